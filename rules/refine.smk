# Refinement of crossovers, with each stage planned from the rows so far, and repeats of disturbed trials.

from crossover.config.claim_forms import claims_of
from crossover.plan.stages import refinement_on


checkpoint plan_refinement:
    input:
        rows=get_rows_before_stage,
        library=get_library("config", "plan", "tables", "statistics", "claims"),
    output:
        plan=f"{RESULTS}/refinement/stage-{{stage}}.json",
    log:
        f"{RESULTS}/logs/plan_refinement/stage-{{stage}}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: JOBS.share
    params:
        refinements={
            name: asdict(refinement_on(PLAN.study[name], PLAN.devices, PLAN.refinement))
            for name in PLAN.stages
        },
        x_axes={name: PLAN.study[name].x_axis for name in PLAN.stages},
        trials={name: PLAN.trials_of(name) for name in PLAN.stages},
        candidates={name: asdict(PLAN.candidates[name]) for name in PLAN.stages if name in PLAN.candidates},
        claims=[
            claim
            for study in (PLAN.study[name] for name in PLAN.stages)
            for claim in claims_of(study.name, study.published, study.claims)
        ],
        steps_per_run={name: PLAN.study[name].steps_per_run for name in PLAN.stages},
        several_hosts=SEVERAL_HOSTS,
    message:
        "Planning stage {wildcards.stage} of the refinement of crossovers"
    script:
        "../scripts/plan_refinement.py"


checkpoint plan_repeats:
    input:
        rows=lambda wildcards: get_rows_before_repeat(int(wildcards.repeat)),
        library=get_library("config", "plan", "tables"),
    output:
        plan=f"{RESULTS}/repeats/repeat-{{repeat}}.json",
    log:
        f"{RESULTS}/logs/plan_repeats/repeat-{{repeat}}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    threads: JOBS.share
    message:
        "Looking for disturbed trials to measure again"
    script:
        "../scripts/plan_repeats.py"
