from __future__ import annotations

import argparse
import re
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import find_largest_batch
import measure_cell
import train_model
from crossover.config.options import (
    check_writable,
    memory_size,
    search_options,
    training_options,
)
from crossover.config.studies import BatchSearch, Effort, Quality
from crossover.config.words import AXES
from crossover.errors import UserError
from trials import CELL, trial_options


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8_589_934_592),
        ("1.5GiB", 1_610_612_736),
        ("4096", 4096),
        ("1152921504606846976", 2**60),
    ],
)
def test_sizes_of_memory_have_units(text: str, size: int) -> None:
    assert memory_size(text) == size


@pytest.mark.parametrize("text", ["8G", "GB", "-8GB", "0", "0.1B", "8GB8", "1e9", "2000000TB"])
def test_a_size_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=rf"^{re.escape(repr(text))} is not allowed; allowed: .*$"):
        memory_size(text)


def test_options_take_what_the_schema_allows() -> None:
    """At both ends of each range, and no further."""
    rules = yaml.safe_load((Path(__file__).parents[3] / "config" / "schema.yaml").read_text())
    config, study = rules["properties"], rules["$defs"]["study"]["properties"]
    numbers = config["effort"]["anyOf"][1]["properties"]
    cell = ["--workload=matmul", "--size=64", "--device=cpu", "--batch-size=1", "--output=x"]
    asked = [
        (measure_cell, "--seed", config["seed"]),
        (measure_cell, "--cpu-threads", config["cpu_threads"]["anyOf"][1]),
        (measure_cell, "--time-limit-s", config["time_limit_s"]),
        (measure_cell, "--size", study["sizes"]["items"]),
        (measure_cell, "--batch-size", study["batch_sizes"]["items"]),
        (measure_cell, "--latency-steps", study["latency_steps"]["anyOf"][1]),
        *(
            (measure_cell, f"--{key.replace('_', '-')}", rule)
            for key, rule in numbers.items()
            if key not in ("preset", "refinement")
        ),
        (find_largest_batch, "--start", config["largest_batch"]["properties"]["start"]),
        (find_largest_batch, "--limit", config["largest_batch"]["properties"]["limit"]),
        (find_largest_batch, "--timed-batches", config["largest_batch"]["properties"]["timed_batches"]),
        (train_model, "--epochs", study["quality"]["properties"]["epochs"]),
        (train_model, "--test-share", study["quality"]["properties"]["test_share"]),
    ]
    assert len(asked) == 23
    for script, option, rule in asked:
        arguments = [text for text in cell if script is not find_largest_batch or "batch" not in text]

        def takes(value: float, script: Any = script, arguments: Any = arguments, option: str = option) -> bool:
            try:
                script.parse_arguments([*arguments, f"{option}={value}"])
            except SystemExit:
                return False
            return True

        step = 1 if "integer" in rule["type"] else 1e-6
        least, above = rule.get("minimum"), rule.get("exclusiveMinimum")
        most, below = rule.get("maximum"), rule.get("exclusiveMaximum")
        assert takes(least if above is None else above + step), option
        assert not takes(least - step if above is None else above), option
        assert takes(most if below is None else below - step), option
        assert not takes(most + 1 if below is None else below), option


def test_an_output_below_a_tilde_makes_no_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^--output: ~.* begins with ~, which the shell left as it is; write the"):
        check_writable(Path("~/t.parquet"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("held", "replaced"), [(b"", True), (b"PAR1 and so on", True), (b"# Notes", False)])
def test_an_output_replaces_only_what_was_written_before(tmp_path: Path, held: bytes, replaced: bool) -> None:
    output = tmp_path / "t.parquet"
    output.write_bytes(held)
    with (
        nullcontext() if replaced else pytest.raises(UserError, match="was not written by this script; name a new file")
    ):
        check_writable(output)
    assert output.read_bytes() == held


SHARED: dict[str, Any] = {"cpu_threads": 2, "time_limit_s": 60.0}
OF_CELL = {axis: getattr(CELL, axis) for axis in AXES}


def test_a_trials_command_line_gives_back_its_cell_and_effort() -> None:
    effort = Effort(blocks_min=7, timed_max_s=1.5)
    more = {"latency_steps": 400, "latency_mistakes": True}
    options = trial_options(replace(CELL, machine="h200"), seed=1, effort=effort, **SHARED, **more)
    parsed = vars(measure_cell.parse_arguments([*options, "--trial=2", "--dataset=a", "--output=b"]))
    expected = {**OF_CELL, **asdict(effort), **SHARED, **more, "machine": "h200", "seed": 1, "isolation": "auto"}
    assert {key: parsed[key] for key in expected} == expected
    assert not any("machine" in option for option in trial_options(CELL, seed=1, effort=effort, **SHARED))


def test_a_searchs_command_line_has_no_batch_size() -> None:
    options = search_options(OF_CELL, BatchSearch(start=8, limit=9, memory_limit="8GB"), seed=1, **SHARED)
    parsed = vars(find_largest_batch.parse_arguments([*options, "--dataset=a", "--output=b"]))
    found = {
        key: parsed[key] for key in ("start", "limit", "memory_limit", "timed_batches", "seed", "size", "isolation")
    }
    assert found == {
        **{"start": 8, "limit": 9, "memory_limit": 8_000_000_000, "timed_batches": 100},
        **{"seed": 1, "size": CELL.size, "isolation": "auto"},
    }
    assert not any("batch-size" in option for option in options)
    assert not any(
        "limit=" in option.replace("time-limit", "")
        for option in search_options(OF_CELL, BatchSearch(), seed=1, **SHARED)
    )


def test_a_trainings_command_line_gives_back_the_training() -> None:
    options = training_options(CELL, Quality(2, 3, 0.25), **SHARED)
    parsed = vars(train_model.parse_arguments([*options, "--seed=4", "--dataset=a", "--output=b"]))
    expected = {**OF_CELL, **SHARED, "epochs": 2, "test_share": 0.25, "seed": 4, "isolation": "auto"}
    assert {key: parsed[key] for key in expected} == expected
