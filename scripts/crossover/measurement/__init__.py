"""The torch wing: everything that happens in the process that measures. Imports no pandas, Matplotlib or Snakemake."""
