from snakemake.utils import min_version

# Before 9.19 a profile cannot be called profile.yaml, and before 9.17 a priority cannot be a function.
min_version("9.19")


# The first file makes the library importable.
include: "rules/hooks.smk"
include: "rules/common.smk"
include: "rules/config.smk"


# The first rule is the default target, unless a workflow that uses this one as a module has a first rule.
rule all:
    input:
        f"{RESULTS}/report.html",
        # A deleted row is measured again.
        get_measured_rows,
        PLAN.trainings,
        expand(f"{RESULTS}/first_answers/{{study}}.txt", study=PLAN.first_answers),


include: "rules/measure.smk"
include: "rules/refine.smk"
include: "rules/analyse.smk"
include: "rules/report.smk"


report: "report/workflow.rst"
