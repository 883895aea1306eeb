# Measuring time is spent where a crossover lies: each stage is planned on what the ones before it measured.


def rows_of(trials):
    """The rows of trials, each a cell and a number; each row once, though two stages may ask for it."""
    return [f"{RESULTS}/cells/{cell.path}/trial-{trial}.parquet" for cell, trial in dict.fromkeys(trials)]


def read_plan(plan):
    """The trials that a stage's plan asks for; a file that is none ends the run in one line."""
    with one_line_errors():
        return planned_trials(Path(plan))


def trials_of_stages(last):
    """The trials that the plans of the stages up to the last one ask for; these plans must be made first."""
    plans = [checkpoints.plan_refinement.get(stage=str(stage)).output[0] for stage in range(1, last + 1)]
    return [trial for plan in plans for trial in read_plan(plan)]


def rows_before_stage(wildcards):
    """What a stage is planned on: the first grid of the studies that are refined, and the stages before."""
    cells = [cell for cell in CELLS if REFINED[cell.study]]
    return rows_of([*product(cells, TRIALS), *trials_of_stages(int(wildcards.stage) - 1)])


def measured_rows(_wildcards):
    """The rows of the first grid and of every stage. Rows that only an older plan asked for are none of them."""
    return rows_of([*product(CELLS, TRIALS), *trials_of_stages(STAGES)])


checkpoint plan_refinement:
    input:
        rows=rows_before_stage,
        library=ANALYSIS_LIBRARY,
    output:
        plan=f"{RESULTS}/refinement/stage-{{stage}}.json",
    log:
        f"{RESULTS}/logs/plan_refinement/stage-{{stage}}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        refinements={
            name: asdict(refinement_on(STUDIES[name], DEVICES, CONFIG.refinement))
            for name, stages in REFINED.items()
            if stages
        },
        x_axes={name: STUDIES[name].x_axis for name, stages in REFINED.items() if stages},
        trials=CONFIG.trials,
        several_hosts=CONFIG.several_hosts,
    message:
        "Planning stage {wildcards.stage} of the refinement of crossovers"
    script:
        "../scripts/plan_refinement.py"
