from snakemake.utils import min_version

min_version("9.27")


include: "rules/config.smk"
include: "rules/measure.smk"
include: "rules/refine.smk"
include: "rules/analyse.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/hooks.smk"


report: "report/workflow.rst"


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
        # A deleted row is measured again.
        measured_rows,
        PLAN.trainings,


rule largest_batches:
    input:
        list(PLAN.searches),
