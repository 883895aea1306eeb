from __future__ import annotations

import argparse
import re
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

import find_largest_batch
import measure_cell
import train_model
from crossover.config.config_keys import LargestBatch
from crossover.config.options import (
    add_cell_options,
    as_options,
    cell_of_options,
    check_writable,
    memory_size,
    new_parser,
)
from crossover.config.studies import (
    MOST,
    BatchSearch,
    Effort,
    Trainings,
)
from crossover.config.words import AXES
from crossover.errors import UserError
from trials import CELL, axis_options, trial_options


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8_589_934_592),
        ("1.5GiB", 1_610_612_736),
        ("4096", 4096),
        ("1152921504606846976", 2**60),
    ],
)
def test_an_amount_of_memory_may_have_a_unit(text: str, size: int) -> None:
    assert memory_size(text) == size


@pytest.mark.parametrize("text", ["8G", "GB", "-8GB", "0", "0.1B", "8GB8", "1e9", "2000000TB"])
def test_an_invalid_amount_of_memory_is_one_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=rf"^{re.escape(repr(text))} is not allowed; allowed: .*$"):
        memory_size(text)


OF_CELL = ("--workload=matmul", "--size=64", "--device=cpu", "--output=x")
NUMBERS: list[tuple[Any, str, type, str]] = [
    *((measure_cell, "--batch-size=1", Effort, field.name) for field in fields(Effort)),
    *((find_largest_batch, "--seed=1", BatchSearch, name) for name in ("start", "limit", "timed_batches")),
    *((train_model, "--batch-size=1", Trainings, name) for name in ("epochs", "test_share")),
]


@pytest.mark.parametrize(("script", "more", "of", "name"), NUMBERS)
def test_an_option_has_the_bounds_of_the_config(script: Any, more: str, of: type, name: str) -> None:
    (metadata,) = (field.metadata for field in fields(of) if field.name == name)
    is_whole = (isinstance(metadata.get("ge"), int) and metadata.get("le") == MOST) or name == "epochs"
    step = 1 if is_whole else 1e-6

    def takes(value: float) -> bool:
        try:
            script.parse_arguments([*OF_CELL, more, f"--{name.replace('_', '-')}={value}"])
        except SystemExit:
            return False
        return True

    for inclusive, exclusive, inwards in (("ge", "gt", step), ("le", "lt", -step)):
        end = metadata.get(inclusive, metadata.get(exclusive))
        assert takes(end if inclusive in metadata else end + inwards)
        assert not takes(end - inwards if inclusive in metadata else end)


def test_an_output_that_begins_with_a_tilde_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^--output: ~.* begins with ~, which the shell did not expand; write out the"):
        check_writable(Path("~/t.parquet"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_an_output_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(
        UserError, match=r"^--output: /proc/t.parquet cannot be written \(.+\); name a file in a folder"
    ):
        check_writable(Path("/proc/t.parquet"))


@pytest.mark.parametrize(("content", "replaced"), [(b"", True), (b"PAR1 and so on", True), (b"# Notes", False)])
def test_an_output_replaces_only_an_earlier_output(tmp_path: Path, content: bytes, replaced: bool) -> None:
    output = tmp_path / "t.parquet"
    output.write_bytes(content)
    with (
        nullcontext() if replaced else pytest.raises(UserError, match="was not written by this script; name a new file")
    ):
        check_writable(output)
    assert output.read_bytes() == content


SHARED: dict[str, Any] = {"cpu_threads": 2, "time_limit_s": 60.0}
AXIS_VALUES = {axis: getattr(CELL, axis) for axis in AXES}


def test_the_options_of_a_trial_parse_to_its_cell_and_effort() -> None:
    effort = Effort(blocks_min=7, timed_max_s=1.5)
    more = {"latency_steps": 400, "latency_mistakes": True}
    options = trial_options(replace(CELL, machine="h200"), seed=1, effort=effort, **SHARED, **more)
    parsed = vars(measure_cell.parse_arguments([*options, "--trial=2", "--dataset=a", "--output=b"]))
    expected = {**AXIS_VALUES, **asdict(effort), **SHARED, **more, "machine": "h200", "seed": 1, "isolation": "auto"}
    assert {key: parsed[key] for key in expected} == expected
    assert not any("machine" in option for option in trial_options(CELL, seed=1, effort=effort, **SHARED))


def test_the_options_of_a_search_parse_to_it_without_a_batch_size() -> None:
    cell = [option for option in axis_options(CELL) if "batch-size" not in option]
    search = LargestBatch(start=8, limit=9, memory_limit="8GB")
    options = [*cell, *as_options({**asdict(search), "seed": 1, **SHARED})]
    parsed = vars(find_largest_batch.parse_arguments([*options, "--dataset=a", "--output=b"]))
    options_read = {
        key: parsed[key] for key in ("start", "limit", "memory_limit", "timed_batches", "seed", "size", "isolation")
    }
    assert options_read == {
        **{"start": 8, "limit": 9, "memory_limit": 8_000_000_000, "timed_batches": 100},
        **{"seed": 1, "size": CELL.size, "isolation": "auto"},
    }
    assert not any("batch-size" in option for option in options)
    assert not any(
        "limit=" in option.replace("time-limit", "")
        for option in as_options({**asdict(LargestBatch()), "seed": 1, **SHARED})
    )


def test_the_options_of_a_training_parse_to_it() -> None:
    options = [*axis_options(CELL), *as_options({"epochs": 2, "test_share": 0.25, **SHARED})]
    parsed = vars(train_model.parse_arguments([*options, "--seed=4", "--dataset=a", "--output=b"]))
    expected = {**AXIS_VALUES, **SHARED, "epochs": 2, "test_share": 0.25, "seed": 4, "isolation": "auto"}
    assert {key: parsed[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--workload=disc_mlp --mode=infer", "--mode: only a model of your own has this option; give --model, or"),
        ("--workload=disc_mlp --unchecked", "--unchecked: only a model of your own has this option"),
        ("--model=net.py:fixed --size=3", "--size: 3, but fixed() has no argument for a size; allowed: 1"),
        ("--model=net.py:build --targets=y", "--table: missing; give the file that has the columns of --targets and"),
        ("--model=net.py:function --precision=bf16", "--precision: bf16, but a function chooses its own; allowed: as_"),
        (
            "--model=net.py:function --execution=compile",
            "--execution: compile, but a function runs as written; allowed:",
        ),
    ],
)
def test_an_option_without_effect_is_one_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("def build(n): ...\ndef fixed(): ...\ndef function(n, device): return n\n")
    parser = new_parser("")
    add_cell_options(parser)
    options = parser.parse_args(["--size=2", "--device=cpu", *words.split()])
    options.dataset = "a"
    with pytest.raises(UserError) as caught:
        cell_of_options(options, batch_size=1)
    assert str(caught.value).startswith(message)
