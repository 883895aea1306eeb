"""The code key of a job covers all files that it imports, and the packages of its workload."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from crossover.config.models import Model, Table
from crossover.config.workloads import OWN, known_workloads
from crossover.home import PACKAGE
from crossover.machine import code_key, entry_points
from crossover.machine.code_key import Code, Modules, code_of, digests_of
from crossover.machine.installed import version_of
from trials import trial_job, write_points

MEASUREMENT = "crossover/measurement"
WORDS = ("figure_kinds", "claim_forms", "statuses")
"""Modules of words that measure nothing."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "scripts"
    shutil.copytree(PACKAGE, copy / "crossover", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_key, "PACKAGE", copy / "crossover")
    monkeypatch.setattr(sys, "path", [part for part in sys.path if not Path(part, "crossover").is_dir()])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return copy


def workload(library: Path, text: str) -> None:
    (library / MEASUREMENT / "workloads" / "mine.py").write_text(text)


@pytest.mark.parametrize(("kind", "module"), [("batch_try", "search"), ("training", "training")])
def test_the_files_of_a_job_are_those_of_its_kind(kind: str, module: str) -> None:
    files = code_of(kind, "disc_mlp").files
    assert {f"crossover.measurement.{name}" for name in (module, "cell", "process.server")} <= files.keys()
    assert not {"crossover.measurement.trial", "crossover.machine.discovery"} & files.keys()


def test_what_measures_nothing_is_imported_by_no_measuring_module() -> None:
    """A new figure, form of claims, status, flag, answer or table must make no trial stale."""
    roots = [entry_points.SERVER, *(module for module, _ in entry_points.WORK.values())]
    roots += [f"{entry_points.MEASUREMENT}.workloads.{name}" for name in known_workloads()]
    roots += [f"{entry_points.MEASUREMENT}.user.{name}" for name in ("model", "function")]
    files = Modules().imported_by(*roots).files
    assert {"crossover.config.studies", "crossover.measurement.user.model"} <= files.keys()
    words = ("figures", "claims", "answers", "tables.registry", *(f"config.{name}" for name in WORDS))
    assert not [name for name in files if name.removeprefix("crossover.").startswith(words)]


def test_the_version_of_a_package_changes_the_keys_of_workloads_that_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys() -> dict[str, str]:
        version_of.cache_clear()
        return {name: code_of("trial", name).key for name in ("bert", "disc_mlp")}

    before = keys()
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version(name) + ".1" * (name == "transformers"))
    changed = keys()
    assert changed["disc_mlp"] == before["disc_mlp"]
    assert changed["bert"] != before["bert"]
    monkeypatch.setattr(metadata, "version", lambda name: version(name) + ".1" * (name == "torch"))
    assert not set(keys().values()) & {*before.values(), *changed.values()}
    version_of.cache_clear()


def test_packages_have_the_names_of_their_distributions(library: Path) -> None:
    """Those that only read the host or write the row, such as psutil and pyarrow, are not part of the key."""
    workload(library, "import json, yaml\ndef build():\n    import numpy.linalg\n    import no_such_package.part\n")
    assert set(code_of("trial", "mine").packages) == {"python", "torch", "numpy", "PyYAML", "no_such_package"}
    assert code_of("trial", "mine").packages["no_such_package"] == "not installed"


def test_editing_the_table_of_a_users_model_changes_its_key(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch")
    samples = tmp_path / "samples.csv"
    samples.write_text("a,b\n1,2\n")
    model = Model(f"{tmp_path}/net.py", "build", table=Table(str(samples), "b", ("a",)))

    def key(model: Model) -> str:
        return code_of("trial", OWN, model=model).key

    before = key(model)
    without = key(replace(model, table=None))
    samples.write_text("a,b\n1,3\n")
    assert len({before, without, key(model)}) == 3


def test_messages_name_the_files_of_a_model_by_their_paths() -> None:
    """Two modules may have the same name, in two folders."""
    files = {
        "net": "net.py",
        "net'": "other/net.py",
        "nets": "nets/__init__.py",
        "nets.small": "nets/small.py",
        ".": "package/__init__.py",
        "tools/other.py": "tools/other.py",
        "fast": "fast.so",
        "data: weights.pt": "weights.pt",
    }
    code = Code({name: Path(file) for name, file in files.items()}, dict.fromkeys(files, "digest"), {}, [*files])
    names = [part.removeprefix("file ") for part in code.parts if part.startswith("file ")]
    assert names == [
        *("net.py", "net'.py", "nets/__init__.py", "nets/small.py", "__init__.py", "tools/other.py", "fast"),
        "weights.pt",
    ]


def test_editing_comments_and_docstrings_keeps_the_key(library: Path) -> None:
    text = '"""Words."""\nclass A:\n    """More."""\n    size = 1\n    """What it is."""\n    name = "this"\n'

    def key(text: str) -> str:
        workload(library, text)
        return code_of("trial", "mine").key

    before = key(text)
    assert key(f"# A comment\n\n{text}# and another\n") == before
    assert key(text.replace('    """More."""\n', "").replace('"""Words."""', '"""Others."""')) == before
    assert len({before, key(f"{text}HARMLESS = 1\n"), key(text.replace('"this"', '"that"'))}) == 3
    assert key("this is no Python") != key("this is none either")


WHAT_IS_IMPORTED = """
import json, sys
from crossover.measurement.process.child import do
from crossover.measurement.process.jobs import job_from_json
row = do(job_from_json(sys.argv[1]))
imported = [name for name, module in sys.modules.items() if name.startswith("crossover")]
print(json.dumps([row.status, row.code_key, imported]))
"""


def test_the_files_of_a_trial_are_what_it_really_imports(tmp_path: Path, in_fresh_process: Callable[..., Any]) -> None:
    trial = trial_job(write_points(tmp_path / "points.safetensors"), tmp_path / "row", latency_steps=400)
    status, key, imported = in_fresh_process(WHAT_IS_IMPORTED, trial.to_json())
    counted = code_of("trial", "disc_mlp")
    assert (status, key) == ("ok", counted.key)
    assert set(imported) <= set(counted.files)
    only_in_a_fork = {
        f"crossover.{name}"
        for name in ("measurement.process.server", "measurement.process.server_key", "machine.environment")
    }
    assert set(counted.files) - set(imported) == only_in_a_fork


PRELOAD = """
import json, sys
from crossover.measurement.process.server import preload
preload(["crossover.measurement.trial"])
print(json.dumps([*sys.modules]))
"""


def test_the_server_watches_all_files_that_it_has_imported(in_fresh_process: Callable[..., Any]) -> None:
    imported = set(in_fresh_process(PRELOAD))
    assert {name for name in imported if name.startswith("crossover")} <= set(
        digests_of(entry_points.SERVER, entry_points.WORK["trial"][0])
    )
    assert not imported & {"transformers", "torchvision", "crossover.measurement.workloads.disc_mlp"}
