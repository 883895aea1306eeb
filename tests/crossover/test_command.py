"""The command `crossover`: the Snakemake command built from its arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossover.command import build_command, selftest
from workflow_copy import ROOT

START = ["-P", "-m", "snakemake", "-s", os.path.relpath(ROOT / "Snakefile"), "--resources", "gpu=1", "--cores", "1"]


CONFIG = os.path.relpath(ROOT / "config" / "{}.yaml")


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("my_net.py:build --sizes 64,256", ["--config", "model=my_net.py:build", "sizes=[64,256]"]),
        (
            "disc_depth --cpu-threads=2 --effort quick",
            ["--config", "studies=disc_depth", "effort=quick", "cpu_threads=2"],
        ),
        ("disc_depth a.yaml", ["--config", "studies=[disc_depth,a.yaml]"]),
        ("cores -- --cores 16 -n", ["--cores", "16", "-n", "--config", "studies=cores"]),
        ("quick --trials 2 -- -n", [f"--configfile={CONFIG.format('quick')}", "-n", "--config", "trials=2"]),
        ("full -- figures", [f"--configfile={CONFIG.format('full')}", "figures"]),
        ("run figures --dry-run", ["figures", "--dry-run"]),
    ],
)
def test_arguments_are_translated_into_a_snakemake_command(line: str, end: list[str]) -> None:
    assert build_command(line.split()) == [*START, *end]


def test_compare_passes_its_arguments_to_the_script() -> None:
    script = os.path.relpath(ROOT / "scripts" / "compare_runs.py")
    assert build_command(["compare", "a", "b", "--output", "c"]) == [script, "a", "b", "--output", "c"]


def test_a_profile_has_its_own_limits() -> None:
    assert build_command(["run", "--profile", "x", "-n"]) == [*START[:5], "--profile", "x", "-n"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("disc_depth --sizs 16", "unknown option --sizs (did you mean '--sizes'?)"),
        (
            "a.py:f --precisions [fp32]",
            "--precisions: a key of a study; give it to one: --overrides '{STUDY: {precisions:",
        ),
        ("disc_depth --sizes", "argument --sizes: expected one argument"),
        ("a.py:f --sizes 64 256", "256: belongs to no option; allowed: names first, and lists with commas"),
        ("a.py:f b.py:f", "a.py:f: a model is measured alone"),
        ("a.py --sizes 64", "a.py: a file without its function; allowed: a.py:FUNCTION, such as a.py:build"),
        ("a.py:", "a.py:: a file without its function; allowed: a.py:FUNCTION"),
        ("cores -- -s a", "-s after `--`: the Snakefile is that of Crossover"),
        ("cores -- --configfile nothere.yaml", "nothere.yaml: no such file"),
        ("run -n --configfile nothere.yaml", "nothere.yaml: no such file"),
        ("run --configfile=broken.yaml figures", "broken.yaml: line 2, column 1: not valid YAML: "),
        ("run --config trials", "--config: trials is empty; give a value"),
        ("quick cores", "quick is a config file with studies of its own"),
        ("selftest extra", "selftest: takes no arguments; allowed: crossover selftest"),
        ("", "the following arguments are required: NAME"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("sizes: [1, 2\n")
    with pytest.raises(SystemExit) as ended:
        build_command(line.split())
    assert ended.value.code
    error = ended.value.code if isinstance(ended.value.code, str) else capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("option", ["--config", "-C", "--config=trials=3"])
def test_a_second_config_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Snakemake takes the last one, and would ignore it."""
    with pytest.raises(SystemExit, match="2"):
        build_command(["disc_depth", "--", "-n", option, "seed=3"])
    assert f"{option.partition('=')[0]}" in capsys.readouterr().err


def test_the_selftest_says_at_its_start_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        told.append(capsys.readouterr().out)
        return subprocess.CompletedProcess(command, 3, "out", "err")

    monkeypatch.setattr(subprocess, "run", fail)
    assert selftest() == 3
    assert told[0].startswith("Measuring two small cells on the CPU")
    assert capsys.readouterr().err == "out\nerr\nerror: the self-test failed; see above\n"


def test_an_unknown_option_is_reported_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    for line, end in (
        ("--size 64", "(did you mean '--sizes'?); Snakemake's own options follow `--`: crossover NAME -- --size"),
        (
            "disc_depth --configfile=x",
            "unknown option --configfile; Snakemake's own options follow `--`: crossover NAME ",
        ),
    ):
        with pytest.raises(SystemExit, match="2"):
            build_command(line.split())
        assert end in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        build_command(["--help"])
    assert "preset (quick, default, thorough)" in " ".join(capsys.readouterr().out.split())


def test_a_run_prints_its_command_and_passes_the_exit_status_on(tmp_path: Path) -> None:
    program = "import sys; from crossover.command import main; sys.argv = ['crossover', *sys.argv[1:]]; main()"
    command = [sys.executable, "-P", "-c", program, "disc_dept", "--effort", "quick"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    (tmp_path / "queue.py").write_text("raise SystemExit('not the one of Python')")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("$ snakemake -s ")
    assert "--config studies=disc_dept effort=quick\n" in done.stderr
    assert "(did you mean 'disc_depth'?)" in done.stderr.splitlines()[-1]
