from snakemake.utils import min_version

min_version("9.27")


include: "rules/preflight.smk"


configfile: "config/config.yaml"


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/datasets.smk"
include: "rules/doctor.smk"
include: "rules/measure.smk"
include: "rules/batches.smk"
include: "rules/refine.smk"
include: "rules/collect.smk"
include: "rules/analyse.smk"
include: "rules/quality.smk"
include: "rules/claims.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/compare.smk"
include: "rules/checks.smk"
include: "rules/local.smk"


rule all:
    default_target: True
    input:
        rules.render_report.output,
        # A deleted row is measured again.
        measured_rows,
        TRAININGS,


rule quality:
    input:
        rules.summarise_quality.output,


rule largest_batches:
    input:
        list(SEARCHES),
        rules.collect_largest_batches.output if SHOWN_SEARCHES else [],
