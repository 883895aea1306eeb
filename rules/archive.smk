# What `snakemake --report` packs is text, whoever wrote it.

from snakemake.report.html_reporter import data as packed


def as_inert(render):
    """JSON of the same values, in which no `<` ends the script element that it stands in, or begins another one.

    Snakemake (9.27) writes parameters, labels and paths into such elements as they are.
    """
    return lambda *values: render(*values).replace("<", r"\u003c")


for packing, render in list(vars(packed).items()):
    if packing.startswith("render_"):
        setattr(packed, packing, as_inert(render))
