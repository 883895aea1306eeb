"""Statistics: from rows to cells, ratios and crossovers."""
