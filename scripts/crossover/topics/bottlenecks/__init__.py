"""Why a step takes its time, and what helps."""
