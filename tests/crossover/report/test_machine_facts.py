"""What a report says of the machines that measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.report.provenance import differing_software, hosts_elsewhere


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (["here"], None),
        ([""], None),
        (["node1"], "node1"),
        (["node1", "here", "node1"], "node1"),
        (["c", "b", "a"], "a and 2 more"),
    ],
)
def test_other_hosts_than_this_one_are_named(hosts: list[str], said: str | None) -> None:
    assert hosts_elsewhere([{"host": host} for host in hosts], "here") == said


def test_only_what_differs_between_machines_is_named(row: Callable[..., dict[str, Any]]) -> None:
    def measured(machine: str, torch: str, timed_min_s: float) -> dict[str, Any]:
        packages = {"python": "3.12", "torch": torch, "transformers": "5.17.0"}
        effort = {"blocks_min": 5, "timed_min_s": timed_min_s}
        return row(
            machine=machine, torch_version=torch, packages=json.dumps(packages), effort=json.dumps(effort), size=2
        )

    rows = [measured("a", "2.11", 1.0), measured("a", "2.11", 2.0), measured("b", "2.13", 1.0)]
    found = differing_software(pd.DataFrame([*rows, row(machine="b", status="timeout")]))
    assert found == [
        {"what": "version of torch", "each": "2.11 on a, 2.13 on b"},
        {"what": "effort timed_min_s", "each": "1.0 and 2.0 on a, 1.0 on b"},
    ]
