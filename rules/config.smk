# Read and check the config, inspect the machine, and make the plan that the rules use.

import gc
import os
import sys
from dataclasses import asdict
from pathlib import Path

# Snakemake's modules and jobs live as long as the run: collecting garbage among them would take a fifth of a dry-run's time.
gc.freeze()
gc.set_threshold(100_000, 50, 100)

REPOSITORY = Path(str(workflow.current_basedir)).parent
IS_MODULE = Path(workflow.basedir).resolve() not in (REPOSITORY.resolve(), REPOSITORY.resolve() / "workflow")
sys.path.insert(0, str(REPOSITORY / "scripts"))

# Jobs import from their script's folder, not from the working directory.
if not IS_MODULE:
    os.environ.pop("PYTHONSAFEPATH", None)
    sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]

from crossover.config.configuration import read_configuration, real_files
from crossover.config.options import tell
from crossover.config.validation import read_mapping
from crossover.config.words import HERE, REFERENCE_FILES
from crossover.errors import failures, one_line_errors
from crossover.machine.discovery import prefer_this_environment
from crossover.machine.invocation import INVOCATION
from crossover.plan.checks import check_config, notes_before_run, reference_files, reference_folders
from crossover.plan.jobs import Jobs
from crossover.plan.rounds import Rounds
from crossover.plan.run_plan import RunPlan
from crossover.plan.snakemake_internals import Run
from crossover.plan.stages import planned_trials


def get_file(path):
    """A file of the workflow, relative to the working directory."""
    return os.path.relpath(REPOSITORY / path)


def get_library(*packages):
    """The modules of the library's top level and of these packages, as a rule's inputs; an edit re-runs the rule."""
    folders = [REPOSITORY / "scripts/crossover" / package for package in (".", *packages)]
    return sorted(get_file(file) for folder in folders for file in folder.glob("*.py"))


def get_dataset(wildcards):
    return PLAN.dataset(wildcards.workload) or []


def get_failures(log):
    """How often the job with this log has failed: a parameter that makes it run again, though outputs under `update` stay."""
    return lambda wildcards: failures(Path(log))


def get_trials_of_stages(last):
    """The trials of the stages of refinement up to `last`, once those are planned."""
    plans = [checkpoints.plan_refinement.get(stage=str(stage)).output[0] for stage in range(1, last + 1)]
    with one_line_errors():
        return [trial for plan in plans for trial in planned_trials(Path(plan))]


def get_rows_before_stage(wildcards):
    """The rows from which a stage is planned: the first grid of the refined studies, and the earlier stages."""
    return PLAN.rows([*PLAN.refined_trials(), *get_trials_of_stages(int(wildcards.stage) - 1)])


def get_rows_before_repeat(number):
    """The rows of the first grid, of all stages, and of earlier repeats, without those of older plans."""
    rows = PLAN.rows([*PLAN.trials_of_grid, *get_trials_of_stages(PLAN.last_stage)])
    for repeat in range(1, number):
        plan = checkpoints.plan_repeats.get(repeat=str(repeat)).output[0]
        with one_line_errors():
            rows += PLAN.rows(planned_trials(Path(plan)), repeat)
    return rows


def get_measured_rows(_wildcards):
    return get_rows_before_repeat(PLAN.repeats + 1)


with one_line_errors():
    # Checked before Snakemake reads it, so that a mistake in the YAML is reported in one line with its position.
    read_mapping(REPOSITORY / "config" / "config.yaml")


configfile: get_file("config/config.yaml")


prefer_this_environment()


with one_line_errors():
    RUN = Run(workflow)
    layers = [("the module's config", config)] if IS_MODULE else RUN.config_layers()
    CONFIG = read_configuration(layers, REPOSITORY / "config")
    MACHINE = RUN.machine()
    PLAN = RunPlan.of(CONFIG, MACHINE.devices)
    check_config(CONFIG, MACHINE, PLAN.devices)
    SHIPPED = Path(get_file("config/reference"))
    REFERENCES = reference_folders(CONFIG, PLAN.devices, SHIPPED)
    JOBS = Jobs(CONFIG, MACHINE, RUN.cores, RUN.gpus)
    ROUNDS = Rounds(PLAN, JOBS.at_once)
    RESULTS = CONFIG.results
    SEVERAL_HOSTS = CONFIG.several_hosts or MACHINE.elsewhere
    if RUN.is_main:
        for note in notes_before_run(CONFIG, MACHINE, REFERENCES, SHIPPED, SEVERAL_HOSTS):
            tell(note)

OF_CLASS = " of {wildcards.machine}" if CONFIG.classes else ""
# rules/hooks.smk sets the value when the run starts.
os.environ.setdefault(INVOCATION, "")


envvars:
    "CROSSOVER_MACHINE",
    "CROSSOVER_INVOCATION",


# A GPU limit given on the command line applies to each machine, not to a whole cluster.
resource_scopes:
    gpu="local",


wildcard_constraints:
    **dict.fromkeys(("batch_size", "size", "trial", "seed", "stage", "repeat"), r"\d+"),
    study="|".join(PLAN.study),
    dataset="|".join(CONFIG.datasets),
    variant=r"\w+",
    machine="|".join(CONFIG.classes or (HERE,)),
    again=r"(-repeat-\d+)?",
