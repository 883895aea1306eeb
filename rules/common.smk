# Reads and validates the config, builds the table of cells, and defines the resource functions.

import inspect
import math
import os
import re
import shlex
import sys
from dataclasses import asdict
from functools import cache
from itertools import product

from crossover.config.claim_forms import claims_of
from crossover.machine.code_key import Modules, code_of
from crossover.plan.code_notes import note_code
from crossover.config.options import axis_options, search_options, setting_options, trial_options
from crossover.config.configuration import read_configuration, real_files
from crossover.plan.checks import check_device_list, check_executor, check_metrics
from crossover.machine.discovery import (
    find_machine,
    hand_down,
    handed_down,
    prefer_this_environment,
    sent_elsewhere,
)
from crossover.config.studies import effort_of
from crossover.failures import failures
from crossover.machine.gpus import several_gpus
from crossover.plan.hardware import (
    check_classes,
    cores_of,
    devices_of,
    on_classes,
    placed,
    resource_of,
    resources_asked,
)
from crossover.plan.invocation import hand_down_invocation, this_invocation
from crossover.config.workloads import memory_mb
from crossover.machine.nodes import find_nodes
from crossover.reading import read_text
from crossover.config.words import HERE, is_cpu, threads_of_side
from crossover.plan.runtimes import runtime_min
from crossover.plan.stages import (
    figures_among,
    measured_late,
    planned_trials,
    refinement_on,
    stages_of,
)
from crossover.config.studies import CELL_PATH, SEARCH_PATH, Cell, check_any_for, in_rounds
from crossover.config.workloads import NULL, workload_traits
from crossover.config.studies import TRAINING_PATH, quality_of, trained_cells
from crossover.config.options import training_options
from crossover.plan.unnoted import check_unnoted
from crossover.config.validation import read_layers
from snakemake_interface_executor_plugins.settings import SharedFSUsage

prefer_this_environment()


def house(path):
    """A file of the workflow, relative to the working directory."""
    return os.path.relpath(Path(workflow.basedir) / path)


def default_partition():
    """The Slurm partition that jobs go to unless their rule says otherwise; None where the profile names none."""
    partition = dict(workflow.resource_settings.default_resources or {}).get("slurm_partition")
    return str(getattr(partition, "raw", partition)).strip("'\"") if partition else None


with one_line_errors():
    # The config file named in the Snakefile comes last in Snakemake's list, but is overridden by the others.
    *overriding, own = map(Path, workflow.configfiles)
    replaced = workflow.config_settings.replace_workflow_config
    LAYERS = read_layers(
        overriding if replaced else [own, *overriding], workflow.config_settings.config_args or ()
    )
    CONFIG = read_configuration(LAYERS, Path(workflow.basedir) / "config")
    check_metrics(CONFIG.studies)
    check_classes(CONFIG.classes, CONFIG.devices)
    MERGED = []

    # What enters `params` must read the same on every host, so the main process looks once and its jobs are told.
    if workflow.is_main_process:
        MACHINE = find_machine()
        # A cluster's jobs are counted by --jobs, those that run here by --cores; the executor is known from onstart on.
        if workflow.resource_settings.nodes is not None:
            MACHINE = sent_elsewhere(MACHINE, find_nodes(default_partition()))
    else:
        MACHINE = handed_down()
    hand_down(MACHINE)
    if workflow.is_main_process:
        hand_down_invocation(this_invocation(sys.argv[1:], os.getcwd()))
    RUN_DEVICES = CONFIG.devices or MACHINE.devices
    DEVICES = devices_of(CONFIG.classes, RUN_DEVICES)
    if CONFIG.check_devices and not MACHINE.elsewhere and workflow.is_main_process:
        check_device_list(CONFIG, MACHINE)
    check_any_for(CONFIG.studies, DEVICES)


envvars:
    "CROSSOVER_MACHINE",
    "CROSSOVER_INVOCATION",


# A GPU limit given on the command line holds for each machine, not for a whole cluster.
resource_scopes:
    gpu="local",


RESULTS = CONFIG.results
# Where a partial report has its tables and figures, so that those of a full run are never touched.
PARTIAL = f"{RESULTS}/partial"
STUDIES = {study.name: study for study in CONFIG.studies}
MEASURED = [study.name for study in CONFIG.studies if study.cells(DEVICES)]
GRID = on_classes(
    [cell for study in CONFIG.studies for cell in study.cells(DEVICES)], CONFIG.classes, RUN_DEVICES
)
# Folders of machines, each with its name, where their runs are merged.
MERGED_FOLDERS = [(run.folder, run.name) for run in MERGED]
# All rows are there then.
CELLS = [] if MERGED else GRID
ON_FEWER_CORES = sorted({cell.study for cell in GRID if threads_of_side(cell.device) is not None})
TRIALS = range(1, CONFIG.trials + 1)
ROUNDS = list(in_rounds(CELLS, CONFIG.trials, CONFIG.seed))
# The patterns of paths, where classes of nodes are named with a level for them.
PLACED_CELL, PLACED_SEARCH, PLACED_TRAINING = (
    placed(pattern, CONFIG.classes) for pattern in (CELL_PATH, SEARCH_PATH, TRAINING_PATH)
)
# What fits does not depend on the number of threads.
SEARCHES = {
    f"{RESULTS}/largest_batch/{PLACED_SEARCH}.json".format(**vars(cell)): STUDIES[cell.study]
    for cell in CELLS
    if threads_of_side(cell.device) is None and cell.workload != NULL
}
# Those that are part of the main job.
SHOWN_SEARCHES = [path for path, study in SEARCHES.items() if study.largest_batch]
TRAININGS = [
    f"{RESULTS}/trainings/{PLACED_TRAINING}.parquet".format(**asdict(cell), seed=CONFIG.seed + number)
    for study in CONFIG.studies
    if not MERGED
    for cell in on_classes(trained_cells(study, DEVICES), CONFIG.classes, RUN_DEVICES)
    for number in range(1, quality_of(study).seeds + 1)
]
REFINED = {
    study.name: 0 if MERGED else stages_of(study, DEVICES, CONFIG.trials, CONFIG.refinement)
    for study in CONFIG.studies
}
STAGES = max(REFINED.values())
PRIORITIES = {(cell, trial): len(ROUNDS) - turn for turn, (trial, cell) in enumerate(ROUNDS)}


# How a job's message names its class of nodes.
OF_CLASS = " of {wildcards.machine}" if CONFIG.classes else ""


wildcard_constraints:
    results="|".join(map(re.escape, (RESULTS, PARTIAL))),
    study="|".join(STUDIES),
    dataset="|".join(CONFIG.datasets),
    variant=r"\w+",
    machine="|".join(CONFIG.classes or (HERE,)),
    batch_size=r"\d+",
    size=r"\d+",
    trial=r"\d+",
    seed=r"\d+",
    stage=r"\d+",


def cell_of(wildcards):
    """The cell that a path names."""
    return Cell(
        wildcards.study,
        wildcards.workload,
        wildcards.protocol,
        int(wildcards.batch_size),
        wildcards.precision,
        wildcards.execution,
        int(wildcards.size),
        wildcards.device,
        wildcards.variant,
        getattr(wildcards, "machine", HERE),
    )


ANALYSIS_ROOMS = ("config", "machine", "plan", "tables", "statistics", "claims", "answers", "figures", "report")


def library(*patterns):
    """Modules of the library whose edit must re-run a rule."""
    return sorted(
        str(path) for pattern in patterns for path in Path(house("scripts/crossover")).glob(pattern)
    )


ANALYSIS_LIBRARY = library("*.py", *(f"{room}/*.py" for room in ANALYSIS_ROOMS))
MODULES = Modules()
# Those of conda or a container have versions that this process does not see.
IN_OWN_ENVIRONMENTS = bool(workflow.deployment_settings.deployment_method)


@cache
def code_today(kind, workload):
    """The code of a kind of job for a workload."""
    return code_of(kind, workload, MODULES)


def code_files(kind):
    """The files of this checkout that a kind of job imports, as a function of its wildcards."""
    here = Path(workflow.basedir).resolve()
    return lambda wildcards: [
        os.path.relpath(file)
        for file in code_today(kind, wildcards.workload).files.values()
        if file.resolve().is_relative_to(here)
    ]


def measuring_code(kind, results):
    """The code that a kind of job imports, as an input; `results` is the pattern of what these jobs have made.

    Snakemake asks after every input of every job. So it is one file that notes all of it, where jobs see this folder;
    elsewhere it is the files themselves.
    """
    if SharedFSUsage.INPUT_OUTPUT not in workflow.storage_settings.shared_fs_usage:
        return code_files(kind)
    note = f".snakemake/crossover/code/{kind}/{{workload}}.json"
    if workflow.is_main_process:
        for workload in {study.workload for study in CONFIG.studies}:
            made = [] if IN_OWN_ENVIRONMENTS else Path(RESULTS).glob(results.format(workload=workload))
            note_code(code_today(kind, workload), Path(note.format(workload=workload)), made)
    return note


def dataset_file(workload):
    """The file of the dataset that a workload reads; none where it draws its inputs itself."""
    dataset = workload_traits(workload).dataset
    return f"{RESULTS}/datasets/{dataset}.safetensors" if dataset else []


def dataset_files(cells):
    """The files of the datasets that some cells read."""
    return {file for cell in cells if (file := dataset_file(cell.workload))}


def dataset_of(wildcards):
    """The dataset that a cell's workload reads."""
    return dataset_file(wildcards.workload)


def trial_of(wildcards):
    """The options that all trials of a cell share, as the shell takes them, and what else their numbers depend on."""
    options = [*axis_options(wildcards), *settings_of(wildcards.study)]
    return {"options": shlex.join(options), **environment_of(wildcards)}


@cache
def settings_of(study):
    """Those of these options that all trials of a study share."""
    return setting_options(
        **shared_options(),
        **overrides_of(STUDIES[study]),
        latency_steps=STUDIES[study].latency_steps,
        latency_mistakes=STUDIES[study].latency_mistakes,
    )


def shared_options():
    """Options of all trials of a run, where its study does not say otherwise."""
    return {"seed": CONFIG.seed, "cpu_threads": CONFIG.cpu_threads}


def overrides_of(study):
    """Effort and time limit of a study's trials: its own, or the run's, as `effort_of` says."""
    return {
        "effort": effort_of(study, CONFIG.effort),
        "time_limit_s": time_limit_of(study),
    }


def time_limit_of(study):
    """Seconds that a trial of a study, a try of a search or a training may take: its own limit, or the run's."""
    return study.time_limit_s or CONFIG.time_limit_s


def search_options_of(wildcards):
    """The command-line options of the search for a cell's largest batch."""
    return search_options(
        wildcards,
        CONFIG.largest_batch,
        **shared_options(),
        time_limit_s=time_limit_of(STUDIES[wildcards.study]),
    )


def training_options_of(wildcards):
    """The command-line options that the trainings of a cell share."""
    return training_options(
        cell_of(wildcards),
        quality_of(STUDIES[wildcards.study]),
        cpu_threads=CONFIG.cpu_threads,
        time_limit_s=time_limit_of(STUDIES[wildcards.study]),
    )


def environment_of(wildcards):
    """What a number depends on beside its options: measured again when it changes."""
    return {
        "torch": MACHINE.torch_version,
        "driver": None if is_cpu(wildcards.device) else MACHINE.driver_version,
    }


def turn_of(wildcards):
    """Priority: a round is measured before the next one starts, in shuffled order; refinement comes last."""
    cell, trial = cell_of(wildcards), int(wildcards.trial)
    return PRIORITIES.get((cell, trial)) or measured_late(cell, trial, CONFIG.seed)


def all_cores():
    """The cores of --cores; those of a node where a cluster's scheduler counts them, and 1 where nobody does."""
    return workflow.resource_settings.cores or (MACHINE.nodes.cpus if MACHINE.nodes else 1)


def threads_of(wildcards):
    """A CPU cell takes all of Snakemake's cores, or of a node, so that nothing runs beside it.

    A cell on another device takes the threads it uses; on a node of a cluster, if nobody says how many, its GPU's share.
    Where cells are not to run side by side, it takes all cores as well. That is no part of `params`, so nothing is measured
    again when it changes: each row says how many GPUs were at work beside it.
    """
    threads = 1 if CONFIG.cpu_threads == "auto" else CONFIG.cpu_threads
    if is_cpu(wildcards.device):
        return cores_of(CONFIG.classes, getattr(wildcards, "machine", HERE)) or max(threads, all_cores())
    if not CONFIG.side_by_side and not MACHINE.elsewhere:
        return max(threads, all_cores())
    shared = MACHINE.nodes is not None and CONFIG.cpu_threads == "auto"
    return MACHINE.nodes.cpus_per_gpu or threads if shared else threads


def gpus_of(wildcards):
    """One GPU for a cell that runs on one; None, never 0, for a CPU cell."""
    return gpu_if_any([wildcards.device])


def class_resource(name):
    """A resource that the classes of nodes set, for jobs on them."""
    return lambda wildcards: resource_of(CONFIG.classes, name, wildcards.machine, wildcards.device)


# What jobs ask for beside what their rules say, so that they reach the nodes of their class.
# What the profile says of all nodes does not count then.
CLASS_RESOURCES = {name: class_resource(name) for name in resources_asked(CONFIG.classes)}
OF_PROFILE = workflow.resource_settings.overwrite_resources
for rule_name, asked in OF_PROFILE.items():
    kept = {name: value for name, value in asked.items() if name not in CLASS_RESOURCES}
    OF_PROFILE[rule_name] = type(asked)(kept)


def mem_mb_of(wildcards, attempt):
    """Memory of a trial, a search or a training: what its workload's arithmetic says, and more where that was short."""
    return memory_mb(wildcards.workload, int(wildcards.size)) * attempt


def runtime_of(wildcards, attempt):
    """Minutes of a trial, which may be measured twice."""
    return runtime_min(time_limit_of(STUDIES[wildcards.study]), 2) * attempt


def training_runtime_of(wildcards, attempt):
    """Minutes of a training."""
    return runtime_min(time_limit_of(STUDIES[wildcards.study])) * attempt


def search_runtime_of(wildcards, attempt):
    """Minutes of a search: some fifty tries, each far below its own limit."""
    return (math.ceil(time_limit_of(STUDIES[wildcards.study]) / 60) + 60) * attempt


def study_of(wildcards):
    """The study's file, completed with defaults."""
    return asdict(STUDIES[wildcards.study])


def published_results_of(wildcards):
    """The file of the study's published results, if it has one."""
    return published_results(STUDIES[wildcards.study]) or []


def published_results(study):
    """The file of a study's published results; None where it has none."""
    results = (study.published or {}).get("results")
    return house(f"config/published/{results}") if results else None


def largest_batches_of(wildcards):
    """The table of the largest batches, where the study asks for them; a merged run has none."""
    asked = STUDIES[wildcards.study].largest_batch and SHOWN_SEARCHES
    return f"{wildcards.results}/largest_batches.parquet" if asked else []


def figures_of(study, results):
    """The figures of a study that was measured, in the order in which its file lists them."""
    return [
        f"{results}/figures/{study}/{kind}.svg"
        for kind in figures_among(
            STUDIES[study],
            DEVICES,
            effort_of(STUDIES[study], CONFIG.effort),
            priced=bool(CONFIG.prices),
        )
    ]


def kept(path):
    """An output that stays as it is until a job has made it anew, also where that job fails.

    Its rule takes `failures_of` as a parameter. Snakemake (9.27) cannot keep what lies in a storage.
    """
    return path if workflow.storage_settings.default_storage_provider else update(path)


def failures_of(log):
    """How often the job with a log has failed: one time more, and it runs again, though its outputs are there."""
    return lambda wildcards: failures(Path(log.format(**wildcards)))


def figure_files(kind, words):
    """The files of a kind of figure: drawn in three formats, and what it shows in one line."""
    path = f"{{results}}/figures/{{study}}/{kind}"

    def labels(wildcards, output):
        takeaway = Path(output.takeaway)
        with one_line_errors():
            said = read_text(takeaway, "takeaway") if takeaway.is_file() else ""
        shown = f"{words}: {said}" if said else words
        # One label only: of a second one with two values Snakemake (9.27) makes a switch, and nothing opens any more.
        # Braces would be read as wildcards.
        return {"figure": shown.replace("{", "(").replace("}", ")")}

    return {
        "svg": report(
            kept(f"{path}.svg"),
            caption=f"../report/{kind}.rst",
            category="{study}",
            labels=labels,
        ),
        "pdf": kept(f"{path}.pdf"),
        "png": kept(f"{path}.png"),
        "takeaway": kept(f"{path}.txt"),
    }


def figures_shown(wildcards):
    """The figures of a report; a partial one has those of the studies of which a trial has finished."""
    begun = MEASURED if wildcards.results == RESULTS else studies_begun()
    return [figure for study in begun for figure in figures_of(study, wildcards.results)]


def as_it_is(path):
    """The path of another run's file, spelled as no rule's output is.

    Otherwise Snakemake would measure an older run again, here and now.
    """
    return os.path.relpath(path) if os.path.isabs(RESULTS) else os.path.abspath(path)


def merged_files(_wildcards):
    """The tables or rows of the runs to merge."""
    with one_line_errors():
        return [as_it_is(file) for run in MERGED for file in run.files]


def merged_provenances(_wildcards):
    """What the runs to merge say of themselves, of those that do."""
    return [as_it_is(run.provenance) for run in MERGED if run.provenance.is_file()]


def gpu_if_any(devices):
    """One GPU where one of the devices is an accelerator; None, never 0, otherwise."""
    return None if all(map(is_cpu, devices)) else 1


def check_trials(workloads, devices):
    """Options of the timing script for cells of a check: of each workload and size, on each device."""
    effort = {"effort": CONFIG.effort, "time_limit_s": CONFIG.time_limit_s}
    trials = []
    for device, (workload, (batch_size, sizes)) in product(devices, workloads.items()):
        dataset = [f"--dataset={path}" for path in [dataset_file(workload)] if path]
        for size in sizes:
            cell = Cell("check", workload, "resident", batch_size, "fp32", "eager", size, device)
            trials.append(shlex.join([*trial_options(cell, **shared_options(), **effort), *dataset]))
    return trials


def isolation_trials(wildcards):
    """Four cells a device: small steps, where the host decides, and large ones."""
    workloads = {"disc_mlp": (100, (3, 10)), "higgs_mlp": (32, (1000,)), "linear_stack": (512, (2048,))}
    return check_trials(workloads, DEVICES)


def side_by_side_trials(wildcards):
    """Three cells of a GPU: two that the host holds up, and one that the GPU does."""
    workloads = {"disc_mlp": (100, (10,)), "higgs_mlp": (32, (100,)), "linear_stack": (512, (2048,))}
    return check_trials(workloads, ["cuda"])


def gpus_side_by_side(wildcards):
    """The GPUs of this machine that the run may use at once; one alone is a user's error."""
    with one_line_errors():
        return several_gpus(MACHINE.gpus, getattr(workflow.global_resources.get("gpu"), "value", None))


def note_unnoted_rows():
    """Have Snakemake note what made the rows whose end a killed run has not seen, so that a later change is.

    Jobs of a cluster go on without the Snakemake that sent them. Beside another run nothing is noted: it may be at work on
    these rows. Raises UserError where the config has changed already.
    """
    if not workflow.execution_settings.lock:
        return
    jobs = [
        job
        for job in workflow.dag.jobs
        if job.rule.name == "measure_cell"
        and not workflow.dag.needrun(job)
        and Path(job.output[0]).is_file()
        and not workflow.persistence.has_metadata(job)
    ]
    if jobs:
        keys = (
            None
            if IN_OWN_ENVIRONMENTS
            else {job: code_today("trial", job.wildcards.workload).key for job in jobs}
        )
        check_unnoted((Path(job.output[0]), job.shellcmd, keys and keys[job]) for job in jobs)

    async def note_all():
        for job in jobs:
            await workflow.persistence.finished(job)

    workflow.async_run(note_all())


# Snakemake asks for the parameters of these functions for each job, and would work them out each time.
for function in (
    dataset_of,
    trial_of,
    turn_of,
    threads_of,
    gpus_of,
    mem_mb_of,
    runtime_of,
):
    function.__signature__ = inspect.signature(function)
