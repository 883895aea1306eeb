"""From rows to numbers: intervals, pairs, ratios, crossovers and refinement."""
