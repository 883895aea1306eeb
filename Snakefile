from snakemake.utils import min_version

min_version("9.27")


include: "rules/preflight.smk"


configfile: "config/config.yaml"


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/partial.smk"
include: "rules/datasets.smk"
include: "rules/doctor.smk"
include: "rules/measure.smk"
include: "rules/batches.smk"
include: "rules/refine.smk"
include: "rules/collect.smk"
include: "rules/analyse.smk"
include: "rules/quality.smk"
include: "rules/problems.smk"
include: "rules/claims.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/archive.smk"
include: "rules/checks.smk"
include: "rules/local.smk"
include: "rules/terminal.smk"


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
        # A deleted row is measured again.
        measured_rows,
        TRAININGS,


rule partial_report:
    input:
        f"{PARTIAL}/report.html",


rule quality:
    input:
        [f"{RESULTS}/quality.{kind}" for kind in ("parquet", "csv", "txt")],


rule largest_batches:
    input:
        list(SEARCHES),
        [f"{RESULTS}/largest_batches.{kind}" for kind in ("parquet", "csv") if SHOWN_SEARCHES],
