"""Everything that runs in the measuring process, with torch. Imports no pandas, Matplotlib or Snakemake."""
