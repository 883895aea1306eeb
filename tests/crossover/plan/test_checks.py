"""The config against what other rooms know: this machine, a cluster's nodes, the columns of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.configuration import Configuration, read_configuration
from crossover.errors import UserError
from crossover.machine.discovery import Machine, Nodes, sent_elsewhere
from crossover.plan.checks import check_device_list, check_executor, check_metrics

CONFIG = Path(__file__).parents[3] / "config"
HERE = Machine(("cpu",), "2.13.0", None)
UNKNOWN_NODES = sent_elsewhere(HERE, None)
KNOWN_NODES = sent_elsewhere(HERE, Nodes(cpus=8, cpus_per_gpu=None))
CLASSES = {"a": {"cores": 64, "devices": ["cpu"]}}


def config(**values: Any) -> Configuration:
    return read_configuration([("config.yaml", {"studies": ["disc_depth"], **values})], CONFIG)


def on_cpu(**values: Any) -> Callable[[], Configuration]:
    return lambda: config(devices=["cpu"], **values)


def test_a_device_that_is_not_here_is_one_line() -> None:
    check_device_list(config(devices=["cpu"]), HERE)
    check_device_list(config(devices="auto"), HERE)
    with pytest.raises(UserError, match=r"^config\.yaml: devices: 'cuda' cannot be used .* allowed here: auto, cpu "):
        check_device_list(config(devices=["cpu", "cuda"]), HERE)


@pytest.mark.parametrize(
    ("read", "machine", "local"),
    [
        (config, HERE, True),
        (config, KNOWN_NODES, False),
        (on_cpu(cpu_threads=8), UNKNOWN_NODES, False),
        (on_cpu(cluster={"classes": CLASSES}), UNKNOWN_NODES, False),
    ],
)
def test_jobs_may_run_here_and_on_known_nodes(read: Callable[[], Configuration], machine: Machine, local: bool) -> None:
    check_executor(read(), machine, local)


@pytest.mark.parametrize(
    ("read", "machine", "local", "message"),
    [
        (config, UNKNOWN_NODES, False, r"config\.yaml: devices: 'auto' takes what Slurm says of its nodes, but sinfo"),
        (on_cpu(), UNKNOWN_NODES, False, "cpu_threads: 'auto' takes the cores that Slurm says its nodes have, but"),
        (config, KNOWN_NODES, True, "--jobs: counts the jobs of a cluster, but these run here; give --cores"),
    ],
)
def test_what_slurm_does_not_know_must_be_named(
    read: Callable[[], Configuration], machine: Machine, local: bool, message: str
) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        check_executor(read(), machine, local)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("step_time_s", None),
        ("run_time_s", None),
        ("step_times_s", r"metric 'step_times_s' is unknown \(did you mean 'step_time_s' or "),
        ("speed", "metric 'speed' is unknown; allowed: samples_per_s, run_time_s, and the numeric columns of "),
    ],
)
def test_a_claim_names_a_column_of_a_row(metric: str, message: str | None) -> None:
    claim = {"statement": "x", "source": "ours", "ratio_below": {"metric": metric, "of": {}, "over": {}, "limit": 1}}
    (study,) = config().studies
    studies = [replace(study, claims=(claim,))]
    if message is None:
        return check_metrics(studies)
    with pytest.raises(UserError, match=rf"^disc_depth\.yaml: claims\.0: {message}"):
        check_metrics(studies)
    return None
