"""What checks of the workflow as a whole need: it runs in them as any user runs it."""
