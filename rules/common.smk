# Functions for inputs and parameters of rules. Those that take wildcards use names that rules/config.smk sets later.

import hashlib
import json
from functools import cache

from crossover.config.configuration import real_files
from crossover.errors import one_line_errors
from crossover.home import IS_INSTALLED, PACKAGE
from crossover.plan.before_run import reference_files
from crossover.plan.stages import planned_repeats, trials_of_stages
from snakemake.exceptions import IncompleteCheckpointException


def get_file(path):
    """A file of the workflow, relative to the working directory. In a module, whose `prefix` it must not get, absolute."""
    return str(REPOSITORY / path) if IS_MODULE else os.path.relpath(REPOSITORY / path)


def get_environment(name):
    """The conda environment of a rule; None for the installed package, which has what it needs where it is installed."""
    return None if IS_INSTALLED else f"../envs/{name}.yaml"


@cache
def get_analysis_code():
    """A digest of the library without what only trials and datasets use, as a parameter: an edit analyses the run anew."""
    files = (
        file
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.relative_to(PACKAGE).parts[0] not in ("measurement", "datasets", "workflow")
    )
    return get_digest(files)


def get_page():
    """A digest of the templates, scripts and styles of the report, as a parameter."""
    return get_digest(file for file in sorted((REPOSITORY / "report").rglob("*")) if file.is_file())


def get_digest(files):
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def get_script(name):
    """A script of a shell command. With `resources` as an argument, its place does not count; what it does is in the key."""
    return lambda wildcards, resources: get_file(f"scripts/{name}.py")


def get_key(kind):
    """The key of a result, whose change makes the job run again."""
    return lambda wildcards: JOBS.key(kind, wildcards).key


def get_job(kind):
    """A job for its command. With `resources` as an argument, only the key re-runs the job: it has what counts."""
    return lambda wildcards, resources: json.dumps(JOBS.job(kind, wildcards))


def get_planned_keys(wildcards):
    """The keys of all results. As a function, it is not called where Snakemake only runs another job."""
    return JOBS.keys(cell.values for cell in [*PLAN.cells, *PLAN.cells_of_candidates])


def is_current(result):
    path = RUN.placed(result)
    return path not in OUTDATED and os.path.exists(path)


@cache
def get_trials_to_measure():
    """The trials of the first grid whose rows were missing or outdated when the run began."""
    return [trial for trial in PLAN.trials_of_grid if not all(map(is_current, PLAN.rows([trial])))]


def get_earlier_rows():
    """The readable rows of the first grid that exist, outdated or not."""
    from crossover.tables.columns import Measurement
    from crossover.tables.rows import read_rows  # needs pandas

    paths = [path for row in PLAN.rows(PLAN.trials_of_grid) if (path := Path(RUN.placed(row))).is_file()]
    return read_rows(paths, Measurement)[0]


def get_dataset(result):
    """The dataset of the job that makes a result. Times of files do not count for a result with the planned key.

    Snakemake (9.27) ignores a job's other reasons to run if an input flagged `ancient` is made again.
    """

    def dataset_of(wildcards):
        path, dataset = result.format(**wildcards), PLAN.dataset(wildcards.workload)
        return [] if dataset is None else ancient(dataset) if is_current(path) else dataset

    return dataset_of


def get_dataset_options(wildcards, resources):
    """The options of a dataset, which are part of its key; with `resources`, only the key re-runs the job."""
    return CONFIG.datasets[wildcards.dataset]


def get_dataset_key(wildcards):
    return JOBS.dataset_key(wildcards.dataset)


def get_real_files(wildcards):
    """The user's files from which a dataset is made."""
    return real_files(CONFIG.datasets[wildcards.dataset])


def get_references(_wildcards):
    """The files of the machines with which this one is compared."""
    return reference_files(REFERENCES)


def get_rows_of_first_answer(wildcards):
    return PLAN.rows(PLAN.preview(wildcards.study))


def get_end_of_round(wildcards):
    """The row of the previous round's last trial. Others of the round may fail, which does not hold up the next one."""
    [row] = PLAN.rows([ROUNDS.last_of(int(wildcards.round) - 1)])
    return ancient(row) if is_current(row) else row


def get_missing(planning, **wildcards):
    """The output of a checkpoint, for a job with other inputs that do not wait for it; empty once it is made."""
    try:
        planning.get(**wildcards)
    except IncompleteCheckpointException as missing:
        return [missing.targetfile]
    return []


def get_rounds():
    """The number of rounds planned so far, and the checkpoint of the next one."""
    for number in PLAN.later_rounds:
        if next_round := get_missing(checkpoints.plan_round, round=str(number)):
            return number - 1, next_round
    return PLAN.rounds, []


def get_trials_of_stages(last):
    """The trials of the stages of refinement up to `last`, once those are planned."""

    def plan_of(stage):
        return Path(checkpoints.plan_refinement.get(stage=str(stage)).output.plan) if stage <= last else None

    with one_line_errors():
        return [*trials_of_stages(plan_of)]


def get_rows_before_stage(wildcards):
    """The rows from which a stage is planned: the first grid of the refined studies, and the earlier stages.

    With `minutes`, the first grid is that of all studies, whose trials take a part of the time. After the last stage,
    one more is planned from the rows with repeats.
    """
    if int(wildcards.stage) > PLAN.last_stage:
        return get_measured_rows(wildcards)
    _, next_round = get_rounds()
    first = PLAN.refined_trials() if PLAN.minutes is None else PLAN.trials_of_grid
    return next_round or PLAN.rows([*first, *get_trials_of_stages(int(wildcards.stage) - 1)])


def get_measured_rows(wildcards):
    """The rows of the first grid, of all stages, and of the repeats.

    To plan repeats, only earlier repeats count. If there are any, what they change in a crossover may need a further
    stage, which is planned last.
    """
    rounds, next_round = get_rounds()
    if next_round:
        stage = get_missing(checkpoints.plan_refinement, stage="1") if PLAN.last_stage else []
        # No job uses these yet. Without the rows that exist, a run that goes on is planned as fast as a new one.
        return [
            *PLAN.rows(trial for trial in get_trials_to_measure() if trial[1] <= rounds),
            *next_round,
            *stage,
        ]
    of_stages = get_trials_of_stages(PLAN.last_stage)

    def plan_of(repeat, part):
        if (str(repeat), part) == (wildcards.get("repeat"), wildcards.get("part")):
            return None
        return Path(checkpoints.plan_repeats.get(repeat=str(repeat), part=part).output.plan)

    with one_line_errors():
        repeats = [
            row
            for repeat, trials in planned_repeats(PLAN.repeats, plan_of)
            for row in PLAN.rows(trials, repeat)
        ]
    if repeats and PLAN.last_stage and not {"repeat", "stage"} & set(wildcards.keys()):
        of_stages = get_trials_of_stages(PLAN.last_stage + 1)
    return [*PLAN.rows([*PLAN.trials_of_grid, *of_stages]), *repeats]
