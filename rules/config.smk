# Reads and checks the config, looks at the machine, and makes the plan that the rules ask.

import gc
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

# Snakemake's modules and its jobs live as long as the run: to look for garbage among them again and again, and once
# more at the end, takes a fifth of a dry-run.
gc.freeze()
gc.set_threshold(100_000, 50, 100)

HOUSE = Path(str(workflow.current_basedir)).parent
IS_MODULE = HOUSE.resolve() != Path(workflow.basedir).resolve()
"""Whether another workflow uses this one as a module."""
sys.path.insert(0, str(HOUSE / "scripts"))

# Where the environment forbids bytecode, as in many containers, each process of a run would compile the library anew.
# Jobs run scripts that import from their own folder, and nothing from the working folder.
if not IS_MODULE:
    os.environ.pop("PYTHONSAFEPATH", None)
    sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from crossover.config.configuration import read_configuration, real_files
from crossover.config.options import tell
from crossover.config.studies import check_any_for
from crossover.config.table_files import left_out
from crossover.config.words import HERE, REFERENCE_FILES
from crossover.config.validation import read_layers, read_mapping
from crossover.errors import one_line_errors
from crossover.failures import failures
from crossover.machine.discovery import (
    find_machine,
    find_nodes,
    hand_down,
    handed_down,
    prefer_this_environment,
    sent_elsewhere,
)
from crossover.plan.checks import check_classes, check_device_list, check_metrics, measured_elsewhere
from crossover.plan.classes import cpu_partition
from crossover.machine.invocation import INVOCATION
from crossover.plan.jobs import Jobs
from crossover.plan.references import check_both_kinds, reference_files, reference_folders
from crossover.plan.rounds import Rounds
from crossover.plan.run_plan import RunPlan


def house(path):
    """A file of the workflow, relative to the working directory."""
    return os.path.relpath(HOUSE / path)


with one_line_errors():
    # Before Snakemake reads it: a mistake in YAML is shown as one line with its place.
    read_mapping(HOUSE / "config" / "config.yaml")


configfile: house("config/config.yaml")


prefer_this_environment()

with one_line_errors():
    if not IS_MODULE:
        # The config file named above comes last in Snakemake's list, but is overridden by the others.
        *overriding, own = map(Path, workflow.configfiles)
        files = overriding if workflow.config_settings.replace_workflow_config else [own, *overriding]
        LAYERS = read_layers(files, workflow.config_settings.config_args or ())
    else:
        LAYERS = [("the module's config", config)]
    CONFIG = read_configuration(LAYERS, HOUSE / "config")
    check_metrics(CONFIG.studies)
    check_classes(CONFIG.classes, CONFIG.devices)
    # What enters `params` must read the same on every host, so jobs are told what the main process found.
    if workflow.is_main_process:
        MACHINE = find_machine()
        # Only a cluster's jobs are counted by --jobs. The executor itself is not known yet.
        if workflow.resource_settings.nodes is not None:
            partition = dict(workflow.resource_settings.default_resources or {}).get("slurm_partition")
            MACHINE = sent_elsewhere(MACHINE, find_nodes(cpu_partition(getattr(partition, "raw", partition))))
    else:
        MACHINE = handed_down()
    hand_down(MACHINE)
    if CONFIG.check_devices and not MACHINE.elsewhere and workflow.is_main_process:
        check_device_list(CONFIG, MACHINE)
    if workflow.is_main_process:
        tables = {study.model.table for study in CONFIG.studies if study.model and study.model.table}
        for note in filter(None, map(left_out, tables)):
            tell(note)
    PLAN = RunPlan.of(CONFIG, MACHINE.devices)
    check_any_for(CONFIG.studies, PLAN.devices)
    REFERENCES = reference_folders(CONFIG, PLAN.devices, Path(house("config/reference")))
    gpus = workflow.resource_settings.resources.get("gpu")
    JOBS = Jobs(CONFIG, MACHINE, workflow.resource_settings.cores, getattr(gpus, "value", gpus) or 1)
    ROUNDS = Rounds(PLAN, JOBS.at_once)

RESULTS = CONFIG.results
SEVERAL_HOSTS = CONFIG.several_hosts or MACHINE.elsewhere
if workflow.is_main_process and not SEVERAL_HOSTS:
    if line := measured_elsewhere(Path(RESULTS), platform.node()):
        print(line, file=sys.stderr)
# How a job's message names its class of nodes.
OF_CLASS = " of {wildcards.machine}" if CONFIG.classes else ""
# How a run was started, which rules/hooks.smk fills in.
os.environ.setdefault(INVOCATION, "")


envvars:
    "CROSSOVER_MACHINE",
    "CROSSOVER_INVOCATION",


# A GPU limit given on the command line holds for each machine, not for a whole cluster.
resource_scopes:
    gpu="local",


wildcard_constraints:
    study="|".join(PLAN.study),
    dataset="|".join(CONFIG.datasets),
    variant=r"\w+",
    machine="|".join(CONFIG.classes or (HERE,)),
    batch_size=r"\d+",
    size=r"\d+",
    trial=r"\d+",
    seed=r"\d+",
    stage=r"\d+",
    repeat=r"\d+",
    again=r"(-repeat-\d+)?",


def library(*rooms):
    """The modules of some rooms of the library: their edit re-runs a rule that computes from rows."""
    return sorted(
        house(file) for room in (".", *rooms) for file in (HOUSE / "scripts/crossover" / room).glob("*.py")
    )


def failures_of(log):
    """How often the job with this log has failed.

    Outputs under `update` stay when a job fails. As a parameter, one more failure makes the job run again.
    """
    return lambda wildcards: failures(Path(log))
