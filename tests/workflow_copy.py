"""A copy of the workflow with its own config, for tests that run the real workflow."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "workflow", "rules", "scripts", "config", "envs", "profiles", "report", "CITATION.cff")

TINY = {
    "warmup_min_steps": 5,
    "warmup_min_s": 0.01,
    "warmup_tolerance": 10,
    "blocks_min": 3,
    "timed_min_s": 0.01,
    "timed_max_s": 2.0,
    "timed_tolerance": 10,
    "warmup_max_s": 2.0,
    "block_min_s": 0.005,
}
"""The smallest effort that gives a measurement."""
UNREFINED = {**TINY, "refinement": {"bisections": 0, "extra_trials": 0}}


def copy_workflow(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            # With the compiled modules, but not those that are being written.
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy2(ROOT / part, folder / part)


def write_config(folder: Path, config: Mapping[str, Any], studies: Mapping[str, Mapping[str, Any]]) -> None:
    for name, values in {"config": config, **{f"studies/{name}": study for name, study in studies.items()}}.items():
        (folder / "config" / f"{name}.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


class WorkflowCopy:
    """A copy of the workflow with two tiny studies, which are not refined."""

    def __init__(self, path: Path) -> None:
        self.path = path
        copy_workflow(path)
        self.edit("studies/disc_depth", sizes=[2, 3], candidates=None, figures=["times", "speedups"])
        self.edit("studies/hsf_width", sizes=[5, 10], protocols=["as_published"], candidates=None, figures=["times"])
        datasets = {"higgs": {"rows": 500}}
        self.config(studies=["disc_depth", "hsf_width"], trials=1, devices=["cpu"], effort=UNREFINED, datasets=datasets)
        # Tests must not depend on the load of this machine, nor on how it compares with references.
        self.config(repeat_disturbed=0, reference="none")
        # Probe the roofs in one second instead of half a minute.
        for name, value in {
            "ATTEMPTS": 1,
            "HOST_ROWS": (256,),
            "HOST_WORKING_SETS": (2**20, 2**22),
            "CACHES": 0,
        }.items():
            self.set_constant("measurement/roofs", name, value)

    @classmethod
    def copy_of(cls, other: WorkflowCopy, path: Path) -> Self:
        """A copy of this workflow with its results, which a test may change."""
        shutil.copytree(other.path, path)
        workflow = cls.__new__(cls)
        workflow.path = path
        return workflow

    def set_constant(self, module: str, name: str, value: object) -> None:
        """Set a constant of one of the library's modules."""
        file = self.path / "scripts" / "crossover" / f"{module}.py"
        text, set_ = re.subn(rf"^({name}\b[^=]*)= .*$", rf"\1= {value}", file.read_text(), flags=re.MULTILINE)
        assert set_ == 1
        file.write_text(text)

    def pretend(self, **config: Any) -> None:
        """Use stand-in trials, which record when and where they ran, in one study."""
        shutil.copy2(ROOT / "tests" / "stand_in_trial.py", self.path / "scripts" / "measure_cell.py")
        self.start_no_server()
        self.config(studies=["disc_depth"], **config)

    def start_no_server(self) -> None:
        """Let no run start a trial server, which would import torch for nothing where trials are not measured."""
        (self.path / "scripts/crossover/measurement/process/server.py").write_text("")

    def notes(self) -> list[dict[str, Any]]:
        files = (self.path / "notes").glob("[!.]*.json")  # not the hidden files that are still being written
        return [json.loads(path.read_text()) for path in files]

    @property
    def results(self) -> Path:
        return self.path / "results"

    def edit(self, name: str, **changes: Any) -> None:
        file = self.path / "config" / f"{name}.yaml"
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))

    def config(self, **changes: Any) -> None:
        self.edit("config", **changes)

    def snakemake(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "1", *arguments],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=900,
            env=environment,
        )

    def run(self, *arguments: str) -> str:
        """Run Snakemake, which must succeed; returns its output."""
        done = self.snakemake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def would_run(self, *arguments: str) -> Counter[str]:
        """The jobs of a dry-run by rule; trials as 'study trial-number'."""
        text = self.run("--dry-run", *arguments)
        jobs = Counter({rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", text, flags=re.MULTILINE)})
        jobs.update(f"{study} {trial}" for study, trial in re.findall(r"Measuring (\w+):.*trial (\d+)", text))
        return jobs
