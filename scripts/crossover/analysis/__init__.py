"""The pandas wing: from measured rows to cells, crossovers, figures and the report. Imports no torch."""
