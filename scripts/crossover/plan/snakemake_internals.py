"""Uses of Snakemake's undocumented interface, each with its reason (as of Snakemake 9.27).

Besides calling these functions, the rules read attributes of `workflow`: `current_basedir` (the folder of the rules,
also in a module), `is_main_process` (each job reads the rules again), `local_exec`, `dryrun`, `touch` and
`dag_settings.targets` (how the run was started), and `resource_settings.cores` (those of --cores, which are divided
among GPUs).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.config.validation import read_layers
from crossover.machine.discovery import Machine, find_machine, find_nodes, hand_down, handed_down, sent_elsewhere
from crossover.plan.terminal import Progress, WithoutCommand, cut_paths, is_for_terminal

Workflow = Any


def config_layers(workflow: Workflow) -> list[tuple[str, Mapping[str, Any]]]:
    """The config files and the options of --config, each with its name; later ones override earlier ones. `config` does
    not tell which file or option a value is from, which error messages need.
    """
    # The `configfile` of the rules comes last in Snakemake's list, but is overridden by the others.
    *overriding, default = map(Path, workflow.configfiles)
    files = overriding if workflow.config_settings.replace_workflow_config else [default, *overriding]
    return read_layers(files, workflow.config_settings.config_args or ())


def machine_of(workflow: Workflow) -> Machine:
    """The devices and versions to plan for, found by the main process only, since `params` must not differ by host."""
    if not workflow.is_main_process:
        return handed_down()
    machine = find_machine()
    if is_for_cluster(workflow):
        machine = sent_elsewhere(machine, find_nodes(cpu_partition(workflow)))
    hand_down(machine)
    return machine


def is_for_cluster(workflow: Workflow) -> bool:
    """Whether Snakemake has a number of cluster jobs (--jobs, which a local run without --cores uses as --cores). The
    executor itself is not known while rules are read."""
    return workflow.resource_settings.nodes is not None


def cpu_partition(workflow: Workflow) -> str | None:
    """The Slurm partition of CPU cells in the profile's `slurm_partition`, a name or an expression of wildcards.

    None if there is none. Snakemake evaluates it for each job, but `devices: auto` needs it earlier.
    """
    resources = dict(workflow.resource_settings.default_resources or {})
    partition = resources.get("slurm_partition")
    return evaluated_partition(getattr(partition, "raw", partition))


def evaluated_partition(text: object) -> str | None:
    """The partition of a CPU cell in a name or an expression of wildcards."""
    try:
        value = eval(str(text), {"wildcards": _Wildcards(device="cpu")})  # as Snakemake evaluates it for each job
    except Exception:
        value = text
    return value if isinstance(value, str) else None


class _Wildcards(dict[str, str]):
    __getattr__ = dict.__getitem__


def gpus_of_run(workflow: Workflow) -> int:
    """Number given with --resources gpu, for planning the rounds of trials; 1 if not given."""
    limit = workflow.resource_settings.resources.get("gpu")
    return getattr(limit, "value", limit) or 1


def show_progress(workflow: Workflow, logger: logging.Logger, progress: Progress) -> None:
    """Add a handler, filters and a formatter to Snakemake's logger.

    A logger plugin would be a package to install, and would replace Snakemake's output instead of adding to it.
    """
    logger.addHandler(progress)
    logger.addFilter(cut_paths)
    output = workflow.output_settings
    if not (output.dryrun or output.verbose or output.printshellcmds):
        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(is_for_terminal)
                handler.addFilter(progress.tells)
                if handler.formatter:
                    handler.setFormatter(WithoutCommand(handler.formatter))


def remove_job_rate_limit(workflow: Workflow) -> None:
    """Let jobs of this machine start at any time.

    With a limit, Snakemake looks for jobs every second while a trial runs, and ends a second late
    (snakemake/snakemake#3744). The scheduler exists only once the run starts.
    """
    workflow.scheduler.job_rate_limiter = None
