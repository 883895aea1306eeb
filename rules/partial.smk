# A report of what has finished, at any moment, even beside a run that is going on. Its rules are those of the full
# report, in a folder of their own. Rows are no inputs of theirs: as such they would be measured first.

from datetime import datetime
from functools import cache


def is_partial(wildcards):
    """Whether a report is of what has finished so far."""
    return wildcards.results == PARTIAL


def in_a_full_run(rows):
    """Rows that a full run collects, as a rule's input; a partial report takes what is there instead."""

    def needed(wildcards):
        if is_partial(wildcards):
            return []
        return rows(wildcards) if callable(rows) else rows

    return needed


def asked_in_part(rule):
    """The rows of a rule that the config asks for, as a parameter of a partial report; None for a full one."""
    return lambda wildcards: asked()[rule] if is_partial(wildcards) else None


def all_asked(wildcards):
    """All rows that the config asks for, by rule; None for a full report, which lacks none."""
    return asked() if is_partial(wildcards) else None


def settings_in_part(wildcards):
    """The options that the trials of a study share, by study, which tell a row of an older config; None for a full one."""
    return {study: settings_of(study) for study in MEASURED} if is_partial(wildcards) else None


def now_in_part(wildcards):
    """A time that is never the same, so that each partial report is made anew; None for a full one."""
    return datetime.now().isoformat() if is_partial(wildcards) else None


@cache
def asked():
    """The rows that the config, and the stages of refinement planned so far, ask for, by the rule that makes them."""
    stages = [Path(f"{RESULTS}/refinement/stage-{stage}.json") for stage in range(1, STAGES + 1)]
    planned = [trial for plan in stages if plan.is_file() for trial in read_plan(plan)]
    of_this_run = [(cell, trial) for cell, trial in planned if cell.study in STUDIES]
    return {
        "measure_cell": rows_of([*product(CELLS, TRIALS), *of_this_run]),
        "find_largest_batch": SHOWN_SEARCHES,
        "train_model": TRAININGS,
    }


def studies_begun():
    """The studies of which a trial has finished, in the order of the config."""
    begun = {
        Path(row).relative_to(f"{RESULTS}/cells").parts[0]
        for row in asked()["measure_cell"]
        if Path(row).is_file()
    }
    return [study for study in MEASURED if study in begun]
