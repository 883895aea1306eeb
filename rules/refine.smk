# Later rounds of a large run, refinement of crossovers, with each stage planned from the rows so far, and repeats of disturbed
# trials.


checkpoint plan_round:
    input:
        get_end_of_round,
    output:
        touch(f"{RESULTS}/rounds/round-{{round}}"),
    # Ahead of what a run measures after its last round.
    priority: ROUNDS.first
    localrule: True
    threads: JOBS.share
    message:
        "Planning round {wildcards.round}"


checkpoint plan_refinement:
    input:
        rows=get_rows_before_stage,
    output:
        plan=f"{RESULTS}/refinement/stage-{{stage}}.json",
    log:
        f"{RESULTS}/logs/plan_refinement/stage-{{stage}}.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        **PLAN.refinement_params,
        code=get_analysis_code(),
        several_hosts=SEVERAL_HOSTS,
        minutes=PLAN.minutes,
        repeats=0 if PLAN.minutes is None else PLAN.repeats,
        references=[str(folder) for folder in REFERENCES] if PLAN.has_predictions else [],
    message:
        "Planning stage {wildcards.stage} of the refinement of crossovers"
    script:
        "../scripts/plan_refinement.py"


checkpoint plan_repeats:
    input:
        rows=get_measured_rows,
    output:
        plan=f"{RESULTS}/repeats/repeat-{{repeat}}{{part}}.json",
    log:
        f"{RESULTS}/logs/plan_repeats/repeat-{{repeat}}{{part}}.log",
    localrule: True
    conda:
        get_environment("analysis")
    threads: JOBS.share
    params:
        code=get_analysis_code(),
        minutes=PLAN.minutes,
    message:
        "Looking for disturbed trials to measure again"
    script:
        "../scripts/plan_repeats.py"
