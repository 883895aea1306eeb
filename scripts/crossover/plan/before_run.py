"""Check the config against this machine, a cluster's nodes, the columns of rows, and the existing references."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.config.claim_forms import DERIVED_METRICS, RatioWithin
from crossover.config.config_keys import Configuration
from crossover.config.study import Study
from crossover.config.table_files import left_out
from crossover.config.words import BASELINE, DEVICES, HERE, REFERENCE_FILES, is_cpu, ranks_of_side
from crossover.errors import UserError, allowed_names, did_you_mean
from crossover.machine.counters import Counters, counters_between, read_counters
from crossover.machine.discovery import Machine
from crossover.machine.threads import physical_cores, threads_for, usable_cores, usable_cpus
from crossover.machine.trust import others_disturb
from crossover.machine.turns import turn_of_others
from crossover.plan.jobs import resources_of
from crossover.plan.run_plan import Classes, Trial
from crossover.reading import read_json
from crossover.tables.reference_files import FACTS_FILE, read_facts
from crossover.tables.registry import claim_metrics
from crossover.tables.trial_times import KEPT_S, TrialTimes

if TYPE_CHECKING:
    import pyarrow as pa

FOR_ALL = ("slurm_partition", "slurm_account", "qos")
"""If a class sets one of these resources, all classes must, since a rule's resource replaces the profile's value."""


def check_config(config: Configuration, machine: Machine, devices: Sequence[str]) -> None:
    """Raise UserError for an unknown metric, invalid class or missing device, or if no study measures on `devices`."""
    check_metrics(config.studies)
    check_classes(config.keys.cluster.classes, config.devices)
    if config.keys.cluster.check_devices and not machine.elsewhere:
        check_device_list(config, machine)
    if not devices:
        raise UserError(f"devices: {too_many_gpus(config, devices)}")
    if not any(study.devices_among(devices) for study in config.studies):
        raise UserError(f"studies: nothing to measure: {studies_left_out(config.studies, devices)}")


def notes_before_run(
    config: Configuration,
    machine: Machine,
    devices: Sequence[str],
    references: Sequence[Path],
    shipped: Path,
    results: Path | None,
) -> list[str]:
    """Notes for the user: what is left out, unused prices, unknown devices, results that may be replaced.

    `devices` are those of the plan. `results` is the folder on disk; None if several hosts measure into it.
    """
    tables = {study.user_model.table for study in config.studies if study.user_model and study.user_model.table}
    notes = [
        *map(left_out, tables),
        unused_prices(config.keys.prices, references, shipped),
        devices_unknown(config, machine),
        too_many_gpus(config, devices),
        studies_left_out(config.studies, devices),
        None if results is None else measured_elsewhere(results, platform.node()),
    ]
    return [note for note in notes if note]


def check_metrics(studies: Sequence[Study]) -> None:
    """Raise UserError if a claim uses an unknown metric."""
    columns = list(claim_metrics())
    for study in studies:
        for number, claim in enumerate(study.claims):
            where, form = f"{study.name}.yaml: claims.{number}", claim.form
            for side in (form.of, form.over) if isinstance(form, RatioWithin) else ():
                if side.metric not in columns:
                    raise UserError(
                        f"{where}: metric '{side.metric}' is unknown{did_you_mean(side.metric, columns, 3)}; allowed: "
                        f"{', '.join(DERIVED_METRICS)}, and the numeric columns of measurements.parquet, which "
                        "the reference of the documentation lists"
                    )


def check_device_list(configuration: Configuration, machine: Machine) -> None:
    """Raise UserError if a device in the config cannot be used on this machine."""
    for device in configuration.devices or ():
        if device.partition("-")[0] not in machine.devices:
            raise UserError(
                f"{configuration.devices_from}: devices: '{device}' cannot be used on this machine; "
                f"allowed here: auto, {', '.join(machine.devices)} ({machine.note or 'no other device was found'}); "
                "to plan or report what another machine measures, set cluster.check_devices to false"
            )


def too_many_gpus(configuration: Configuration, devices: Sequence[str]) -> str | None:
    """A note on the config's devices that are not planned, since they need more GPUs than the run has."""
    sides = [side for side in configuration.devices or () if ranks_of_side(side) > 1 and side not in devices]
    if not sides:
        return None
    most = max(map(ranks_of_side, sides))
    return (
        f"left out, since this run has fewer GPUs: {', '.join(sides)}; on a host that has them, give "
        f"--cores {most} --resources gpu={most}"
    )


def studies_left_out(studies: Sequence[Study], devices: Sequence[str]) -> str | None:
    """A note on the studies that name no device of the run."""
    others = [study for study in studies if not study.devices_among(devices)]
    names = ", ".join(f"{study.name} ({', '.join(study.devices or ())})" for study in others)
    start = f"studies left out, since none of their devices is in this run ({', '.join(devices)})"
    end = "run them on a machine that has one, with `devices: auto`"
    return f"{start}: {names}; {end}" if others else None


def check_executor(configuration: Configuration, machine: Machine, local: bool) -> None:
    """Raise UserError if jobs for a cluster would run here (`local`), or on nodes with unknown devices or cores.

    It is raised, too, for more threads than this machine has CPUs.
    """
    if local and machine.elsewhere:
        raise UserError(
            "--jobs: counts the jobs of a cluster, but these run here; give --cores, or a cluster's profile"
        )
    named, threads, cpus = configuration.keys.cluster.classes, configuration.keys.cpu_threads, len(usable_cpus())
    if local and named:
        raise UserError(
            f"cluster.classes: {', '.join(named)} are classes of a cluster's nodes, but the jobs would "
            "run here; send them there with a profile, such as --profile profiles/slurm, or set cluster.classes to null"
        )
    if local and threads != "auto" and threads > cpus:
        raise UserError(
            f"cpu_threads: {threads}, but jobs on this machine may use {cpus} CPUs; allowed: auto, 1 to {cpus}"
        )
    if local or machine.nodes is not None:
        return
    if configuration.devices is None:
        raise UserError(
            f"{configuration.devices_from}: devices: 'auto' takes the devices that Slurm reports, but "
            f"{machine.why_no_nodes}; name the nodes' devices, such as [cpu, cuda]"
        )
    classes = named or {"": {}}
    if threads == "auto" and not all(values.get("cores") for values in classes.values()):
        raise UserError(
            f"cpu_threads: 'auto' takes the cores that Slurm reports, but {machine.why_no_nodes}; "
            "give the cores of a node that a job may have, such as cpu_threads=8"
        )


def devices_unknown(configuration: Configuration, machine: Machine) -> str | None:
    """A note if jobs are planned for nodes whose devices are unknown, which `check_executor` refuses in a run."""
    if not machine.elsewhere or machine.nodes is not None or configuration.devices is not None:
        return None
    return (
        f"{machine.why_no_nodes}, so this plan is for {', '.join(machine.devices)}; a run needs "
        "the nodes' devices, such as devices=[cpu,cuda]"
    )


def check_classes(classes: Classes | None, devices: Sequence[str] | None) -> None:
    """Raise UserError if a class has a reserved name, or lacks devices or a resource; `devices` None means auto."""
    for name, values in (classes or {}).items():
        if name == HERE:
            raise UserError(f"cluster.classes.{name}: the name is reserved for runs without classes; choose another")
        if not values.get("devices") and devices is None:
            raise UserError(
                f"cluster.classes.{name}.devices: missing, and devices: auto cannot distinguish classes; name the "
                "devices of these nodes, such as [cpu, cuda]"
            )
        for missing in (key for key in FOR_ALL if key in resources_of(classes) and key not in values):
            raise UserError(
                f"cluster.classes.{name}.{missing}: missing, but another class has it; give each class its own"
            )


def measured_elsewhere(results: Path, here: str) -> str | None:
    """A note if the results were measured on another host; None if on this host, or if unknown."""
    try:
        machines = read_json(results / "provenance.json", "provenance")["machines"]
        hosts = sorted({machine["host"] for machine in machines} - {""})
    except (UserError, KeyError, TypeError):
        return None
    if not hosts or here in hosts:
        return None
    return (
        f"{results}: measured on {' and '.join(hosts)}, and this host is {here}; if the hardware differs, this run "
        "replaces those results, so give another results folder to keep both"
    )


def notes_at_start(
    config: Configuration, machine: Machine, before: Counters, local: bool, cores: int | None = None
) -> Iterator[str]:
    """Notes for the user before the first trial: why a GPU is not used, and, if jobs run here, who else uses this host.

    `before` has the counters from the time when the workflow was read; `cores` is the number given to Snakemake.
    """
    if local and cores and BASELINE in (config.devices or machine.devices):
        threads = threads_for(BASELINE, config.keys.cpu_threads, usable_cores())
        if threads > cores:
            yield f"--cores {cores} only orders jobs: a CPU trial uses {threads} cores; for fewer: cpu_threads={cores}"
    if machine.note and not config.devices:
        yield machine.note
    if local and (load := load_by_others(before, read_counters())):
        yield load
    if local and (holder := turn_of_others(os.environ)):
        yield f"trials wait for their turn on this host, which is used by {holder}"


def budget_words(minutes: float, trials: Sequence[Trial], rows: pa.Table) -> str:
    """The budget of a run, and what its first grid of `trials` will leave of it by the rows of earlier trials."""
    budget = f"Budget: {minutes:g} min, of which {KEPT_S:.0f} s are kept for start, peak rates, analysis and report"
    if not rows.num_rows:
        return f"{budget}; the {len(trials)} trials of the first grid are measured in any case"
    times = TrialTimes.of(rows)
    missing = (cell for cell, trial in trials if trial not in times.by_cell.get(cell, ()))
    grid_s = times.used_s + sum(map(times.cost_s, missing))
    left_s = 60 * minutes - KEPT_S - grid_s
    leaves = f"about {left_s / 60:.1f} min" if left_s > 0 else "nothing"
    return (
        f"{budget}; by earlier rows, the first grid takes {grid_s / 60:.1f} min, which leaves {leaves} for refinement"
    )


def load_by_others(before: Counters, after: Counters) -> str | None:
    """A note if other programs use so many CPUs that CPU trials would be flagged; None otherwise."""
    cpus = usable_cpus()
    facts = {
        "others_cpus": counters_between(before, after)["others_cpus"],
        "device": "cpu",
        "affinity_cores": physical_cores(cpus),
        "logical_cpus": len(cpus),
        "timed_s": after.monotonic_s - before.monotonic_s,
    }
    if not others_disturb(facts):
        return None
    return (
        f"load by others: {facts['others_cpus']:.1f} of {len(cpus)} CPUs busy; trials that they disturb are flagged "
        "`busy_host`. Stop them, or measure on a quiet machine"
    )


def reference_folders(reference: str | Sequence[str], devices: Sequence[str], shipped: Path) -> list[Path]:
    """Folders of the references; `auto` takes those of `shipped` if the run has no accelerator. Raises UserError."""
    shipped_folders = _shipped_folders(shipped)
    if reference in ("none", ("none",)):
        return []
    if reference == "auto":
        folders = shipped_folders if all(map(is_cpu, devices)) else []
    else:
        names = [reference] if isinstance(reference, str) else reference
        folders = [_folder(name, shipped_folders) for name in names]
    names = [read_facts(folder).name for folder in folders]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"reference: two are called '{doubled[0]}'; allowed: one; export one of them under another name"
        )
    return folders


def unused_prices(prices: Mapping[str, float] | None, folders: Sequence[Path], shipped: Path) -> str | None:
    """A note on prices whose keys are not `here`, a device or a reference; None if there are none."""
    if not prices:
        return None
    references = {read_facts(folder).name for folder in [*folders, *_shipped_folders(shipped)]}
    names = [HERE, *DEVICES, *sorted(references)]
    unused = [f"'{name}'{did_you_mean(name, names, 1)}" for name in prices if name not in (*names, "currency")]
    return f"prices: no reference is called {' or '.join(unused)}; such prices are not used" if unused else None


def check_both_kinds(devices: Sequence[str]) -> None:
    """Raise UserError unless a run measures both the CPU and an accelerator, as a reference must."""
    if BASELINE not in devices or all(map(is_cpu, devices)):
        measured = ", ".join(devices) or "nothing"
        raise UserError(f"export_reference: the run measures {measured}; allowed: the CPU and an accelerator together")


def _shipped_folders(shipped: Path) -> list[Path]:
    return sorted(path.parent for path in shipped.glob(f"*/{FACTS_FILE}"))


def _folder(name: str, shipped: Sequence[Path]) -> Path:
    matching = [path for path in shipped if path.name == name] or [Path(name)]
    if not (matching[0] / FACTS_FILE).is_file():
        if "/" in name and not matching[0].is_dir():
            raise UserError(f"reference: {name}: no such folder; allowed: a folder with {FACTS_FILE}")
        names = [path.name for path in shipped]
        allowed = allowed_names(name, names) if names else "allowed: auto, none"
        raise UserError(f"reference: '{name}' is unknown; {allowed}, or a folder with {FACTS_FILE}")
    return matching[0]


def reference_files(folders: Sequence[Path]) -> list[str]:
    """The files of references, for a rule's inputs."""
    return [str(folder / name) for folder in folders for name in REFERENCE_FILES]
