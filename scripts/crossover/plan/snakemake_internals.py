"""Uses of Snakemake's undocumented interface, each with its reason (as of Snakemake 9.27).

Apart from them, rules/hooks.smk reads `workflow.current_basedir` and `workflow.basedir`, to find this package, and
imports `snakemake.logging.logger`. `plan.terminal` reads fields and texts of log records.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossover.config.layers import read_layers
from crossover.machine.discovery import Machine, find_machine, find_nodes, hand_down, handed_down, sent_elsewhere
from crossover.plan.terminal import Progress, WithoutCommand, cut_paths


class SnakemakeRun:
    """How Snakemake was started; `workflow` is Snakemake's object of this name, as rules see it."""

    def __init__(self, workflow: Any) -> None:
        self.workflow = workflow
        self._modifier = workflow.modifier  # the module's whose rules are being read
        self.resources = workflow.resource_settings

    @property
    def is_main(self) -> bool:
        """Whether this is Snakemake's main process. Jobs on other nodes or in other processes read the rules again."""
        return bool(self.workflow.is_main_process)

    @property
    def is_local(self) -> bool:
        """Whether jobs run on this machine; known once the run starts."""
        return bool(self.workflow.local_exec)

    def names(self) -> dict[str, str]:
        """The rules that are read here, by their names in the run, which a module's `use rule ... as` changes."""
        names = {name: self._modifier.avail_rulename(name) for name in self._modifier.rule_proxies._rules}
        return {used: name for name, used in names.items() if used}

    def placed(self, path: str) -> str:
        """The path of a file of the rules on disk, which a module's `prefix` changes."""
        return str(self._modifier.path_modifier.replace_prefix(path))

    def reads_again(self, logger: logging.Logger) -> bool:
        """Whether an earlier `use rule` statement has read the same module, and shows its progress."""
        return any(handler.name == self._reader for handler in logger.handlers)

    @property
    def _reader(self) -> str:
        return f"crossover {id(self._modifier.rule_proxies)}"

    @property
    def is_dry_run(self) -> bool:
        """Whether Snakemake only plans; known once the run starts."""
        return bool(self.workflow.dryrun)

    @property
    def touches(self) -> bool:
        """Whether Snakemake only marks outputs as up to date."""
        return bool(self.workflow.touch)

    def makes(self, *targets: str) -> bool:
        """Whether the run makes these targets (none: the default target), and is neither a dry-run nor `--touch`."""
        return {*self.workflow.dag_settings.targets} == {*targets} and not (self.is_dry_run or self.touches)

    @property
    def cores(self) -> int | None:
        """Number given with --cores, which is divided among GPUs."""
        cores: int | None = self.resources.cores
        return cores

    @property
    def gpus(self) -> int:
        """Number given with --resources gpu, for planning the rounds of trials; 1 if not given."""
        limit = self.resources.resources.get("gpu")
        return getattr(limit, "value", limit) or 1

    @property
    def config_entries(self) -> list[str]:
        """The `key=value` entries given with --config."""
        return list(self.workflow.config_settings.config_args or ())

    @property
    def has_own_config(self) -> bool:
        """Whether the Snakefile gives the module a config of its own, which `--config` does not change."""
        return self._modifier.globals["config"] is not self.workflow.modifier_stack[0].globals["config"]

    def config_layers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The config files and the options of --config, each with its name. Later ones override earlier ones.

        Error messages need the origin of a value, which Snakemake's `config` does not have.
        """
        # The `configfile` of the rules comes last in Snakemake's list, but is overridden by the others.
        *overriding, default = map(Path, self.workflow.configfiles)
        settings = self.workflow.config_settings
        files = overriding if settings.replace_workflow_config else [default, *overriding]
        return read_layers(files, self.config_entries)

    def machine(self) -> Machine:
        """The devices and versions to plan for. Only the main process finds them, so that `params` are the same on all
        hosts.
        """
        if not self.is_main:
            return handed_down()
        machine = find_machine()
        here = machine.gpus or self.gpus
        machine = replace(machine, gpus=min(self.gpus, here), has_spare_gpus=here > self.gpus)
        # --jobs is for clusters (a local run without --cores uses it as --cores); the executor is not known yet.
        if self.resources.nodes is not None:
            machine = sent_elsewhere(machine, find_nodes(self._cpu_partition()))
        if machine.elsewhere:
            # Snakemake cuts a job's GPUs to those of this machine, though the limit's scope is local.
            self.workflow.register_resource("gpu", sys.maxsize)
        hand_down(machine)
        return machine

    def _cpu_partition(self) -> str | None:
        """The Slurm partition of CPU cells, from the profile's `slurm_partition`; None if there is none.

        The profile has a name or an expression of wildcards. Snakemake evaluates the expression for each job, but
        `devices: auto` needs the partition earlier.
        """
        partition = dict(self.resources.default_resources or {}).get("slurm_partition")
        return evaluated_partition(getattr(partition, "raw", partition))

    def set_default_target(self, rule: Any) -> None:
        """Make a rule the default target if there is none. Snakemake forgets the default target of an included file."""
        self.workflow.default_target = self.workflow.default_target or rule.rule.name

    def show_progress(self, logger: logging.Logger, progress: Progress) -> None:
        """Add a handler, filters and a formatter to Snakemake's logger.

        A logger plugin would be a package to install, and would replace Snakemake's output instead of adding to it.
        """
        progress.name = self._reader
        logger.addHandler(progress)
        logger.addFilter(cut_paths)
        output = self.workflow.output_settings
        if not (output.dryrun or output.verbose or output.printshellcmds):
            for handler in logger.handlers:
                if handler.name == "DefaultStreamHandler":
                    handler.addFilter(progress.tells)
                    if handler.formatter:
                        handler.setFormatter(WithoutCommand(handler.formatter))

    def measure_again(self, dag: type[Any], files: Collection[str]) -> None:
        """Make jobs with these outputs run, if they are part of the run; `dag` is Snakemake's class of this name.

        `--forcerun` would also make each file a target.
        """
        begin = dag.__init__

        def begin_with_files(made: Any, *arguments: Any, **options: Any) -> None:
            begin(made, *arguments, **options)
            made.forcefiles.update(files)

        dag.__init__ = begin_with_files

    def remove_job_rate_limit(self) -> None:
        """Let jobs of this machine start at any time.

        With a limit, Snakemake looks for jobs every second while a trial runs, and ends a second late
        (snakemake/snakemake#3744). The scheduler exists only once the run starts.
        """
        self.workflow.scheduler.job_rate_limiter = None


def evaluated_partition(text: object) -> str | None:
    """The partition of a CPU cell, from a name or an expression of wildcards; None if the result is not a string."""
    try:
        value = eval(str(text), {"wildcards": _Wildcards(device="cpu")})  # as Snakemake evaluates it for each job
    except Exception:
        value = text
    return value if isinstance(value, str) else None


class _Wildcards(dict[str, str]):
    __getattr__ = dict.__getitem__
