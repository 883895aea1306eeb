"""Measuring processes, and how commands start and supervise them. Imports no pandas, Matplotlib or Snakemake."""
