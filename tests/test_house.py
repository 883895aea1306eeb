"""The rules of the house."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.answers.caveats import CAVEATS
from crossover.answers.takeaways import TAKEAWAYS
from crossover.claims.claims import CLAIM_COLUMNS
from crossover.config import words
from crossover.config.claim_forms import FORMS, PINNABLE
from crossover.config.studies import BatchSearch, Effort, Quality, Refinement
from crossover.config.validation import with_defaults
from crossover.config.workloads import known_workloads, workload_traits
from crossover.datasets import MAKERS
from crossover.report.report_figures import CAPTIONS
from crossover.report.run_summary import SUMMARY_COLUMNS
from crossover.statistics.comparisons import CROSSOVER_COLUMNS
from crossover.statistics.cores_worth import CORES_COLUMNS
from crossover.statistics.cost_models import COST_MODEL_COLUMNS
from crossover.statistics.largest_batches import SEARCH_COLUMNS
from crossover.statistics.pairings import PAIRS
from crossover.statistics.problems import PROBLEM_COLUMNS, REMEDIES
from crossover.statistics.quality import QUALITY_COLUMNS
from crossover.statistics.run_comparison import COMPARISON_COLUMNS
from crossover.statistics.summary import CELL_COLUMNS
from crossover.statistics.unfinished import UNFINISHED
from crossover.tables.columns import Measurement

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "scripts" / "crossover"
SCHEMA = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text())


def imported_by(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden(paths: list[Path], packages: set[str]) -> dict[str, set[str]]:
    found = {
        str(path.relative_to(ROOT)): {name for name in imported_by(path) if name.startswith(tuple(packages))}
        for path in paths
    }
    return {path: names for path, names in found.items() if names}


def rules() -> dict[str, str]:
    """Text of every rule that runs a script, by its name."""
    texts: dict[str, str] = {}
    for path in (ROOT / "rules").glob("*.smk"):
        parts = re.split(r"^(?:rule|checkpoint) (\w+):$", path.read_text(), flags=re.MULTILINE)
        texts |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return texts


QUESTIONS = {"predict_time"}
"""Scripts that answer a user's own question from a finished run; no rule runs them."""


def test_scripts_are_named_as_their_rules() -> None:
    assert set(rules()) | QUESTIONS == {path.stem for path in (ROOT / "scripts").glob("*.py")}
    for name, text in rules().items():
        assert f"scripts/{name}.py" in text


def test_every_rule_says_what_it_does_and_where_it_logs() -> None:
    for name, text in rules().items():
        for directive in ("message:", "log:", "conda:"):
            assert directive in text, f"{name} lacks {directive}"


def pins(path: Path) -> dict[str, str]:
    text = path.read_text()
    return dict(re.findall(r"^\s*(?:- )?([\w-]+)==(\S+)$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("name", ["benchmark.yaml", "analysis.yaml"])
def test_environments_carry_the_pins_of_requirements(name: str) -> None:
    required, environment = pins(ROOT / "requirements.txt"), pins(ROOT / "envs" / name)
    assert environment
    assert environment.items() <= required.items()


def test_every_import_is_pinned_in_requirements() -> None:
    packages = {"sklearn": "scikit-learn", "pynvml": "nvidia-ml-py", "yaml": "pyyaml"}
    standard = __import__("sys").stdlib_module_names
    imported = {name.split(".")[0] for path in (ROOT / "scripts").rglob("*.py") for name in imported_by(path)}
    third_party = {packages.get(name, name) for name in imported - standard - {"crossover"}}
    assert third_party - set(pins(ROOT / "requirements.txt")) == set()


def described_keys(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    found = {}
    for key, rule in schema.get("properties", {}).items():
        found[f"{path}{key}"] = rule
        found |= described_keys(rule, f"{path}{key}.")
    return found


STUDY = SCHEMA["$defs"]["study"]


@pytest.mark.parametrize("schema", [SCHEMA, STUDY], ids=["config", "study"])
def test_every_key_has_a_description_and_a_default_or_is_required(schema: dict[str, Any]) -> None:
    keys = described_keys(schema)
    assert keys
    for key, rule in keys.items():
        assert rule.get("description"), f"{key} lacks a description"
    for key, rule in described_keys(STUDY["properties"]["claims"]["items"]).items():
        assert rule.get("description"), f"claims: {key} lacks a description"
    for key, rule in schema["properties"].items():
        assert "default" in rule or key in schema["required"], f"{key} lacks a default"


def test_config_file_states_the_defaults() -> None:
    written = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    assert written == with_defaults({}, SCHEMA)


def test_effort_of_the_command_line_is_that_of_the_schema() -> None:
    assert SCHEMA["properties"]["effort"]["properties"].keys() == {field.name for field in fields(Effort)}
    assert Effort(**with_defaults({}, SCHEMA)["effort"]) == Effort()


def test_refinement_is_that_of_the_schema() -> None:
    assert Refinement(**with_defaults({}, SCHEMA)["refinement"]) == Refinement()
    assert SCHEMA["properties"]["refinement"]["properties"]["pairs"]["items"]["enum"] == list(PAIRS)


def test_a_search_by_hand_begins_as_the_config_does() -> None:
    assert BatchSearch(**with_defaults({}, SCHEMA)["largest_batch"]) == BatchSearch()


def test_a_training_by_hand_is_that_of_the_schema() -> None:
    quality = SCHEMA["$defs"]["study"]["properties"]["quality"]
    assert Quality(**with_defaults({}, quality)) == Quality()


def test_schema_knows_the_words_of_the_records() -> None:
    study = SCHEMA["$defs"]["study"]["properties"]
    assert SCHEMA["properties"]["devices"]["anyOf"][1]["items"]["enum"] == list(words.DEVICES)
    assert study["precisions"]["items"]["enum"] == list(words.PRECISIONS)
    assert study["executions"]["items"]["enum"] == list(words.EXECUTIONS)
    assert study["protocols"]["items"]["enum"] == list(words.PROTOCOLS)
    assert set(SCHEMA["properties"]["datasets"]["properties"]) == set(MAKERS)


def test_schema_knows_the_words_of_the_claims() -> None:
    claim = SCHEMA["$defs"]["study"]["properties"]["claims"]["items"]["properties"]
    assert tuple(claim)[3:] == FORMS
    axes = {
        "device": words.DEVICES,
        "precision": words.PRECISIONS,
        "execution": words.EXECUTIONS,
        "protocol": words.PROTOCOLS,
    }
    for form in FORMS:
        parts = claim[form]["properties"]
        places = [parts[key]["properties"] for key in ("where", "slow", "fast", "of", "over") if key in parts]
        assert places
        for place in places:
            assert form == "same_quality" or set(place) - {"metric"} == set(PINNABLE)
            for axis, allowed in axes.items():
                assert axis not in place or place[axis]["enum"] == list(allowed)


def test_every_kind_of_figure_has_a_rule_and_its_captions() -> None:
    kinds = set(SCHEMA["$defs"]["study"]["properties"]["figures"]["items"]["enum"])
    assert kinds == set(CAPTIONS) == set(TAKEAWAYS)
    assert {f"plot_{kind}" for kind in kinds} == {name for name in rules() if name.startswith("plot_")}
    for kind in kinds:
        assert f'**figure_files("{kind}", ' in rules()[f"plot_{kind}"]
        assert (ROOT / "report" / f"{kind}.rst").is_file()


def test_workloads_say_what_they_offer() -> None:
    assert {"disc_mlp", "higgs_mlp", "linear_stack", "mnist_cnn"} <= set(known_workloads())
    for workload in known_workloads():
        traits = workload_traits(workload)
        assert traits.dataset is None or traits.dataset in MAKERS
        assert set(traits.protocols) <= set(words.PROTOCOLS)
        assert 1 <= traits.size_range[0] < traits.size_range[1]


def test_results_readme_describes_every_column_as_the_code_does() -> None:
    text = (ROOT / "results" / "README.md").read_text()
    measured = [f"| `{c.name}` | {c.metadata['unit']} | {c.metadata['doc']} |" for c in fields(Measurement)]
    others = [
        [f"| `{name}` | {doc} |" for name, doc in columns.items()]
        for columns in (
            CELL_COLUMNS,
            CROSSOVER_COLUMNS,
            COST_MODEL_COLUMNS,
            CORES_COLUMNS,
            CLAIM_COLUMNS,
            QUALITY_COLUMNS,
            SEARCH_COLUMNS,
            COMPARISON_COLUMNS,
            PROBLEM_COLUMNS,
            SUMMARY_COLUMNS,
        )
    ]
    for rows in (measured, *others):
        assert [row for row in rows if f"\n{row}\n" not in text] == []
        assert "\n".join(rows) in text  # in this order, with nothing in between


def test_published_data_carry_their_source() -> None:
    files = list((ROOT / "config" / "published").glob("*.csv"))
    assert files
    for path in files:
        assert path.read_text().startswith("# ")


PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in (".", "config", "docs", "profiles", "results")
    for page in (ROOT / folder).glob("*.md")
)


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not link.startswith("http") and not ((ROOT / page).parent / link).is_file()] == []


def test_method_names_every_flag_and_every_key_of_the_effort_and_the_refinement() -> None:
    text = (ROOT / "docs" / "method.md").read_text()
    named = [*words.FLAGS, *words.STATUSES, *(f"effort.{field.name}" for field in fields(Effort))]
    named += [f"refinement.{field.name}" for field in fields(Refinement)]
    assert [word for word in named if f"`{word}`" not in text] == []


def test_every_flag_and_every_status_has_words_for_a_reader() -> None:
    assert set(CAVEATS) == {*words.FLAGS, *words.STATUSES} - {"ok"}


def test_every_way_to_have_no_time_has_a_remedy() -> None:
    assert set(words.STATUSES) - {"ok"} <= set(REMEDIES)
    assert set(UNFINISHED) <= set(REMEDIES)
    assert all(": " in text for text in words.FLAGS.values())
