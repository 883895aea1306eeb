# Measuring time is spent where a crossover lies: each stage is planned on what the ones before it measured.

from crossover.plan.stages import planned_trials, refinement_on


def get_trials_of_stages(last):
    """The trials that the stages up to the last one ask for; their plans must be made first."""
    plans = [checkpoints.plan_refinement.get(stage=str(stage)).output[0] for stage in range(1, last + 1)]
    with one_line_errors():
        return [trial for plan in plans for trial in planned_trials(Path(plan))]


def get_rows_before_stage(wildcards):
    """The rows that a stage is planned on: the first grid of the refined studies, and the stages before it."""
    return PLAN.rows([*PLAN.refined_trials(), *get_trials_of_stages(int(wildcards.stage) - 1)])


def get_rows_before_repeat(number):
    """The rows of the first grid and of every stage, and those of the repeats before this one.

    A row that only an older plan asked for is not among them.
    """
    rows = PLAN.rows([*PLAN.trials_of_grid, *get_trials_of_stages(PLAN.last_stage)])
    for repeat in range(1, number):
        plan = checkpoints.plan_repeats.get(repeat=str(repeat)).output[0]
        with one_line_errors():
            rows += PLAN.rows(planned_trials(Path(plan)), repeat)
    return rows


def get_measured_rows(_wildcards):
    """All rows that a run asks for."""
    return get_rows_before_repeat(PLAN.repeats + 1)


checkpoint plan_refinement:
    input:
        rows=get_rows_before_stage,
        library=get_library("config", "plan", "tables", "statistics"),
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
        ways={name: asdict(PLAN.ways[name]) for name in PLAN.stages if name in PLAN.ways},
        several_hosts=SEVERAL_HOSTS,
    message:
        "Planning stage {wildcards.stage} of the refinement of crossovers"
    script:
        "../scripts/plan_refinement.py"


# Trials that others disturbed are measured again when everything else is measured.
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
