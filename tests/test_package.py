"""The installed package, and the workflow as Snakemake's users deploy it: from a repository, by its tag."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from crossover import __version__
from workflow_copy import ROOT, copy_workflow

pytestmark = pytest.mark.slow

REPOSITORY = "someone/crossover"
TAG = f"v{__version__}"
DEPLOY = f"snakedeploy deploy-workflow https://github.com/{REPOSITORY} . --tag {TAG}"
TINY_CONFIG = ROOT / ".test" / "config" / "config.yaml"
MODULE = f"""
configfile: "config/config.yaml"


module crossover:
    snakefile:
        github("{REPOSITORY}", path="workflow/Snakefile", tag="{TAG}")
    config:
        config


use rule * from crossover
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a process in which the package's wheel is installed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    site = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    subprocess.run(["chmod", "-R", "a-w", str(site)], check=True)
    paths = os.pathsep.join([str(site / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": str(site), "PATH": paths}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, installed: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of the package, in which addresses at GitHub lead to a repository on this machine."""
    folder = tmp_path_factory.mktemp("github")
    work, bare = folder / "work", folder / f"{REPOSITORY}.git"
    copy_workflow(work)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, work)
    git = ["git", "-C", str(work), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", TAG]):
        subprocess.run([*git, *words], check=True)
    with (work / "rules" / "measure.smk").open("a") as rules:
        rules.write("# Changed\n")
    for words in (["commit", "-qam", "y"], ["tag", "changed"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
    redirected = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{folder}/.insteadOf"}
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    return {**installed, **redirected, "GIT_CONFIG_VALUE_0": "https://github.com/", **cache}


def run(line: str, folder: Path, environment: Mapping[str, str], status: int = 0) -> str:
    """Run a command, which must end with `status`; returns its output."""
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(line.split(), cwd=folder, env=environment, text=True, timeout=300, **merged)
    assert done.returncode == status, done.stdout
    return done.stdout


def test_the_installed_command_measures_from_a_read_only_package_for_a_user_who_is_not_root(
    installed: Mapping[str, str], tmp_path: Path
) -> None:
    as_user = [] if os.geteuid() else ["unshare", "--user", "--map-user=1000"]
    if as_user and (shutil.which("unshare") is None or subprocess.run([*as_user, "true"]).returncode):
        as_user = []  # this machine allows no user namespace
    site = Path(installed["PYTHONPATH"])
    before = sorted(site.rglob("*"))
    if as_user or os.geteuid():
        assert subprocess.run([*as_user, "touch", str(site / "written")], stderr=subprocess.DEVNULL).returncode
    told = run(shlex.join([*as_user, "crossover", "selftest"]), tmp_path, installed)
    assert f"Crossover {__version__} measures, analyses and reports here." in told
    assert sorted(site.rglob("*")) == before


def test_the_installed_command_works_in_an_empty_folder(installed: Mapping[str, str], tmp_path: Path) -> None:
    assert "Measuring hsf_width" in run("crossover quick -- -n", tmp_path, installed)
    assert "torch" in run("crossover doctor", tmp_path, installed)
    snakefile = run("crossover --snakefile", tmp_path, installed).strip()
    assert "To measure: " in run(f"snakemake -n --cores 1 -s {snakefile}", tmp_path, installed)


def test_a_module_from_a_repository_uses_the_installed_package_of_its_version(
    deployed: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "Snakefile").write_text(MODULE)
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.yaml").write_text("studies: [disc_depth]\nsizes: [2, 3]\ntrials: 1\n")
    assert "To measure: 2 trials" in run("snakemake -n --cores 1", tmp_path, deployed)
    assert "To measure: 3 trials" in run("snakemake -n --cores 1 --config sizes=[2,3,4]", tmp_path, deployed)


def test_rules_from_a_repository_tell_the_command_that_installs_their_package(
    deployed: Mapping[str, str], tmp_path: Path
) -> None:
    def told(tag: str, environment: Mapping[str, str]) -> str:
        (tmp_path / "Snakefile").write_text(MODULE.replace(TAG, tag).replace('configfile: "config/config.yaml"', ""))
        return run("snakemake -n --cores 1", tmp_path, environment, status=1).splitlines()[-1]

    rules, source = f"error: these rules are of Crossover {__version__}, but ", f"git+https://github.com/{REPOSITORY}"
    assert told("changed", deployed) == (
        f"{rules}the installed package of this version has others; run `pip install --force-reinstall --no-deps "
        f"{source}@changed`"
    )
    without = {name: value for name, value in deployed.items() if name != "PYTHONPATH"}
    command = f"pip install {source}@{TAG}"
    assert told(TAG, without) == f"{rules}its package is not installed; run `{command}`"
    run(command, tmp_path, without | into(tmp_path / "site"))
    assert "To measure: " in run("snakemake -n --cores 1", tmp_path, without | into(tmp_path / "site"))


def into(site: Path) -> dict[str, str]:
    """The environment in which pip installs packages without dependencies into a folder, and Python imports them."""
    pip = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_TARGET": str(site)}
    return {**pip, "PYTHONPATH": str(site)}


def test_the_steps_of_the_guide_to_snakedeploy_end_in_its_reports(
    deployed: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    guide = (ROOT / "docs" / "how-to" / "snakedeploy.md").read_text()
    guide = guide.replace("OWNER/crossover", REPOSITORY).replace("TAG", TAG)
    steps = [line.strip() for block in re.findall(r"```\n(.*?)```", guide, re.DOTALL) for line in block.splitlines()]
    environment = {**deployed, **into(tmp_path_factory.mktemp("site"))}
    told = []
    for line in filter(None, steps):
        if line != "pip install snakedeploy":
            told.append(run(line, tmp_path, environment))
        if line == DEPLOY:
            shutil.copy(TINY_CONFIG, tmp_path / "config" / "config.yaml")
    assert "Measured 2 of 2 trials." in told[2]
    assert "Report: results/report.html" in told[2]
    assert (tmp_path / "results" / "report.html").is_file()
    assert (tmp_path / "report.zip").is_file()


def test_a_deployed_workflow_measures_the_studies_of_its_own_config(
    deployed: Mapping[str, str], tmp_path: Path
) -> None:
    run(DEPLOY, tmp_path, deployed)
    study = tmp_path / "config" / "studies" / "disc_depth.yaml"
    study.write_text(study.read_text().replace("\nsizes: [", "\nsizes: [15, "))
    assert "Measuring disc_depth: size 15 on cpu" in run("snakemake -n --cores 1", tmp_path, deployed)


def test_the_run_of_the_catalogs_check_is_planned(installed: Mapping[str, str], tmp_path: Path) -> None:
    line = f"crossover run --configfile {TINY_CONFIG} -n"
    assert "To measure: 2 trials" in run(line, tmp_path, installed)
    assert "To measure: 2 trials" in run(f"{line} --sdm conda", tmp_path, installed)  # without conda
    assert run("crossover --version", tmp_path, installed) == f"Crossover {__version__}\n"
