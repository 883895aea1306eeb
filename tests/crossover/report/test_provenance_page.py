"""The section of the page that lets a reader doubt a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.machine.checkout import Checkout
from crossover.plan.invocation import Invocation
from crossover.report.machine_facts import machine_facts
from crossover.report.provenance import provenance
from report_pages import html_of, tables_of

PowerLaws = Callable[..., pd.DataFrame]
HOSTILE = "<script>alert('1')</script> & \"é\""


@pytest.fixture
def section_of(power_laws: PowerLaws, tmp_path: Path) -> Callable[..., str]:
    """The section's HTML; keywords replace values of the rows."""

    def build(
        run: Invocation | None,
        config: dict[str, Any] | None = None,
        trials: int = 2,
        runs: Sequence[Mapping[str, Any]] = (),
        **values: Any,
    ) -> str:
        rows = power_laws({2: 100, 4: 100_000}, trials=trials).assign(**values)
        (tmp_path / "cells.csv").write_text("abc")
        spec: dict[str, Any] = {"title": "A title", "question": "When?", "published": None, "figures": []}
        studies = {"disc_depth": spec}
        files = {"table": [tmp_path / "cells.csv"]}
        gathered = provenance([rows], config or {}, studies, run, files, tmp_path / "report.html", "today", runs)
        tables = tables_of(rows, x_axis="size")
        page = html_of(
            {"disc_depth": {**spec, "steps_per_run": None}},
            tables,
            provenance=gathered,
            effort={"timed_max_s": 3.0},
            cpu_threads=1,
        )
        return page[page.index('aria-labelledby="provenance"') : page.index("</main>")]

    return build


def text_of(section: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", section)).split())


def test_everything_has_a_place_of_its_own(section_of: Callable[..., str]) -> None:
    section = section_of(Invocation("snakemake --cores 1", "/house", Checkout("d" * 40, "main", "v1")))
    places = re.findall(r'id="(\w+)"', section)
    assert [
        name for name in ("provenance", "code", "settings", "config", "files", "rerun", "cite") if name in places
    ] == [*("provenance", "code", "settings", "config", "files", "rerun", "cite")]
    text = text_of(section)
    assert f"made this page {'d' * 40} branch main tag v1" in text
    assert f"git checkout {'d' * 40} pip install -r requirements.txt snakemake --cores 1" in text
    assert '<a href="cells.csv" download>cells.csv</a>' in section
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in text
    assert '<a href="provenance.json" download>' in section
    assert "@software{crossover2026," in text


def test_of_very_many_hosts_some_are_shown_and_the_rest_counted(section_of: Callable[..., str]) -> None:
    section = section_of(None, trials=4, hostname=[f"node{number}" for number in range(16)])
    assert "4 more devices measured; they are in provenance.json." in text_of(section)
    assert len(re.findall(r'<th scope="col">[CG]PU', section)) == 2 * 12
    assert "more devices" not in text_of(section_of(None, trials=3, hostname=[f"node{number}" for number in range(12)]))


def test_a_changed_checkout_names_its_files(section_of: Callable[..., str]) -> None:
    checkout = Checkout("d" * 40, changed=("rules/new one.smk",))
    text = text_of(section_of(Invocation("snakemake", "/house", checkout), code_version="e" * 40 + "-dirty"))
    assert f"{'e' * 40}-dirty" in text
    assert "Changed or unknown to git: rules/new one.smk" in text
    assert "That commit lacks the changes named above." in text


def test_nothing_measured_has_no_machine() -> None:
    assert machine_facts([pd.DataFrame({"device": []})]) == []


def test_without_git_the_page_says_so(section_of: Callable[..., str]) -> None:
    text = text_of(section_of(Invocation("snakemake", "/house", Checkout(unknown="git is not installed"))))
    assert "made this page not known: git is not installed" in text
    assert "not recorded: no git, or no git checkout" in text
    assert "git checkout" not in text[text.index("Run it again") :]


def test_effort_is_that_of_the_rows_where_they_say_another_than_the_config(section_of: Callable[..., str]) -> None:
    def paragraph(**values: Any) -> str:
        text = text_of(section_of(None, **values))
        return text[text.index("Each time is") : text.index("Every rule")]

    config = "Effort of the run, where a study has none of its own: timed_max_s 3.0. CPU threads: 1."
    assert config in paragraph(effort=None)
    assert config in paragraph(effort='{"timed_max_s": 3}')
    other = paragraph(effort=['{"timed_max_s": 1.0}', *['{"timed_max_s": 3.0}'] * 7])
    assert "Effort of the run" not in other
    assert "disc_depth (1 row): timed_max_s 1.0; disc_depth (7 rows): timed_max_s 3.0. CPU threads: 1." in other


MERGE = Invocation("snakemake merge", "/house", Checkout("d" * 40))


def test_each_merged_run_has_its_own_config_and_command(section_of: Callable[..., str]) -> None:
    told = {
        "made_at": "then",
        "run": {"command": "snakemake --cores 4", "folder": "/there"},
        "code": {"code_version": "e" * 40 + "-dirty", "changed": ["Snakefile"]},
        "analysed_with": {"pandas": "9.9"},
        "rerun": [f"git checkout {'e' * 40}", "snakemake --cores 4"],
        "config": {"trials": 7},
        "studies": {"disc_depth": {"sizes": [2, 11]}},
    }
    runs = [
        {"name": "h200", "folder": "a", "provenance": told, "doubt": None},
        {"name": "laptop", "folder": "b", "provenance": None, "doubt": "its folder is bare"},
    ]
    text = text_of(section_of(MERGE, {"trials": 3}, runs=runs))
    joined = text[text.index("The runs that are joined here") : text.index("Data files")]
    assert f"h200 Reported at then in /there , commit {'e' * 40}-dirty . git checkout" in joined
    for words in ("trials: 7", "[2, 11]", "Reported with pandas 9.9.", "unknown to git: Snakefile"):
        assert words in joined
    assert "laptop Mind: its folder is bare. Its config and command are not known here" in joined
    assert "Config of this page, which measured nothing" in text[: text.index("The runs that are joined here")]
    rerun = text[text.index("Run it again") :]
    assert "These commands join the runs again and measure nothing" in rerun
    assert "--forceall" not in rerun
    assert "The runs that are joined here" not in text_of(section_of(MERGE))


def test_what_a_merged_run_says_is_text_whatever_it_holds(section_of: Callable[..., str]) -> None:
    told = {
        "made_at": HOSTILE,
        "run": {"folder": HOSTILE},
        "code": {"code_version": HOSTILE, "changed": [HOSTILE]},
        "analysed_with": {HOSTILE: HOSTILE},
        "rerun": [HOSTILE],
        "config": {"title": HOSTILE},
        "studies": {HOSTILE: {}},
    }
    section = section_of(MERGE, runs=[{"name": HOSTILE, "folder": "a", "provenance": told, "doubt": HOSTILE}])
    assert "<script" not in section
    # Name twice, doubt, time, folder, commit, command, file, package, its version, config, study.
    assert text_of(section[section.index('id="runs"') :]).count(HOSTILE) == 12


def test_paths_commands_and_values_are_text_whatever_they_hold(section_of: Callable[..., str]) -> None:
    checkout = Checkout("d" * 40, branch=HOSTILE, changed=(HOSTILE,))
    run = Invocation(HOSTILE, HOSTILE, checkout)
    section = section_of(run, {"results": HOSTILE}, hostname=HOSTILE, command=HOSTILE, backend_settings=HOSTILE)
    assert "<script" not in section
    # Host of both devices in both tables, branch, file, switches of both devices, config, folder, run, trial.
    assert text_of(section).count(HOSTILE) == 12
