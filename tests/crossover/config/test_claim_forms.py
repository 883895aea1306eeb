"""A claim of a study has a known form and selects cells that the study measures."""

from __future__ import annotations

from typing import Any

import pytest

from crossover.config.claim_forms import Claim, CrossoverBetween, PaybackWithin, RatioWithin, SameQuality, Side
from crossover.config.key_types import checker
from user_errors import error_line

STATEMENT = {"statement": "x", "source": "Somebody (2019)"}
SPEEDUP = {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "where": {"size": 2}, "range": [4, 5]}
RATIO = {"metric": "step_time_s", "of": {"size": 2}, "over": {"size": 3}, "where": {"device": "cpu"}, "range": [1, 2]}
SAME = {"metric": "accuracy", "within": 0.1}


def ratio(**changes: Any) -> dict[str, Any]:
    return {"ratio_between": {key: value for key, value in {**RATIO, **changes}.items() if value is not ...}}


@pytest.mark.parametrize(
    ("values", "form", "published"),
    [
        (
            {"crossover_between": {"range": [800, 1200.5], "where": {"precision": "fp32"}}},
            CrossoverBetween(range=(800.0, 1200.5), where={"precision": "fp32"}),
            "tested: 800 to 1,200",
        ),
        (
            {"speedup_between": SPEEDUP, "published": 4.77},
            RatioWithin(
                Side({"size": 2, "device": "cpu"}, "step_time_s"),
                Side({"size": 2, "device": "cuda"}, "step_time_s"),
                4.0,
                5.0,
            ),
            "4.77 (tested: 4 to 5)",
        ),
        (
            {"ratio_below": {"of": {"metric": "a"}, "over": {"metric": "b"}, "limit": 2}},
            RatioWithin(Side({}, "a"), Side({}, "b"), None, 2.0),
            "tested: below 2",
        ),
        (
            {
                "payback_between": {
                    "of": {"execution": "compile"},
                    "over": {"execution": "eager"},
                    "where": {"size": 2},
                    "range": [100, 400],
                }
            },
            PaybackWithin(
                Side({"size": 2, "execution": "compile"}, "step_time_s"),
                Side({"size": 2, "execution": "eager"}, "step_time_s"),
                100.0,
                400.0,
            ),
            "tested: 100 to 400",
        ),
        (
            {"same_quality": {**SAME, "study": "y"}},
            SameQuality(metric="accuracy", within=0.1, study="y"),
            "tested: within ±0.1",
        ),
        ({"same_quality": SAME, "source": "ours"}, SameQuality(**SAME), "tested: within ±0.1"),
    ],
)
def test_a_claim_is_read_from_its_keys(values: dict[str, Any], form: object, published: str) -> None:
    claim = checker(Claim).validate_python({**STATEMENT, **values})
    assert (claim.form, claim.shown, claim.statement) == (form, published, "x")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({}, "claims.0: none given; allowed: exactly one of crossover_between, speedup_between, ratio_between, "),
        ({"source": "ours", "published": 3, **ratio()}, "claims.0: published: 3.0 is not allowed; allowed: null"),
        (ratio(range=[5, 4]), "claims.0.ratio_between.range: [5, 4] is reversed"),
        (ratio(where={"size": 2}), "claims.0.ratio_between: of: size pinned in 'where' as well"),
        (ratio(metric=...), "claims.0.ratio_between: of: give one metric, either for each side or for both"),
        (ratio(where={}), "claims.0.ratio_between: the selection (size 2) leaves cells that differ in device; pin"),
        (ratio(metric="run_time_s"), "claims.0.ratio_between: run_time_s needs the steps of the published run"),
        (ratio(over={"size": 2}), "claims.0.ratio_between: both sides are the same cell (device cpu, size 2)"),
        (ratio(metric="latencies_s"), "claims.0.ratio_between: latencies_s needs latency_steps, which is 0"),
        (ratio(where={"device": "cpu", "variant": "a"}), "claims.0.ratio_between.where.variant: 'a' is not measured"),
        (ratio(of={"size": 2, "execution": "compile"}), "claims.0.ratio_between.of.execution: 'compile' is not meas"),
        (
            {"crossover_between": {"range": [1, 2], "where": {"size": 2}}},
            "claims.0.crossover_between.where.size: 2 is not allowed; the crossover is over it; leave it out",
        ),
        (
            {"crossover_between": {"range": [1, 2], "where": {"device": "cpu"}}},
            "claims.0.crossover_between: where.device: 'cpu' is not allowed",
        ),
        ({"same_quality": {**SAME, "study": "min"}}, "claims.0.same_quality.study: 'min' is unknown; allowed: mine"),
        ({"same_quality": SAME}, "claims.0.same_quality.study: 'mine' trains no models; allowed: a study with quality"),
        ({"source": None, **ratio()}, "claims.0.source: missing; allowed: author, title and date, or 'ours'"),
    ],
)
def test_an_invalid_claim_is_one_line(folder: Any, claim: dict[str, Any], message: str) -> None:
    whole = {key: value for key, value in {**STATEMENT, **claim}.items() if value is not ...}
    assert error_line(lambda: folder.study(claims=[whole])).startswith(f"studies/mine.yaml: {message}")


@pytest.mark.parametrize(
    ("changes", "claim", "message"),
    [
        (
            {"latency_steps": 400},
            ratio(metric="latencies_cold_s"),
            "ratio_between: latencies_cold_s needs latency_mist",
        ),
        ({"timed": False, "quality": {}}, ratio(), "ratio_between: the study times nothing; allowed: same_quality"),
        (
            {"precisions": ["fp32", "bf16"], "batch_sizes": [10, 20]},
            {"crossover_between": {"range": [1, 2]}},
            "crossover_between: the selection (no axis pinned) leaves cells that differ in batch_size, precision; pin",
        ),
        ({"quality": {}}, {"same_quality": {**SAME, "where": {"device": "cpu"}}}, "same_quality.where: selects only"),
    ],
)
def test_the_study_of_a_claim_must_measure_what_it_compares(
    folder: Any, changes: dict[str, Any], claim: dict[str, Any], message: str
) -> None:
    text = error_line(lambda: folder.study(claims=[{**STATEMENT, **claim}], **changes))
    assert text.startswith(f"studies/mine.yaml: claims.0.{message}")


def test_a_claim_may_name_a_study_that_is_not_run(folder: Any) -> None:
    folder.write("other", precisions=["fp32", "bf16"], quality={})

    def claims(precision: str) -> list[dict[str, Any]]:
        return [{**STATEMENT, "same_quality": {**SAME, "study": "other", "where": {"precision": precision}}}]

    assert folder.study(claims=claims("bf16")).claims
    text = error_line(lambda: folder.study(claims=claims("tf32")))
    assert "where.precision: 'tf32' is not measured by study 'other'" in text
    folder.write("other")
    assert "study: 'other' trains no models" in error_line(folder.read)


def test_without_a_source_a_claim_has_that_of_the_published_results(folder: Any) -> None:
    study = folder.study(claims=[{"statement": "x", **ratio()}], published=STATEMENT)
    assert study.claims[0].source == STATEMENT["source"]
