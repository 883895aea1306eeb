from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.short_verdicts import short_verdicts
from crossover.claims.claims import CLAIM_COLUMNS
from crossover.claims.findings import DIFFERS, NOT_TESTABLE, REPRODUCED
from crossover.config.claim_forms import OURS

CROSSING = {"crossover_between": {"range": [1, 2]}}
OTHER = {"ratio_below": {"limit": 1}}


def said(
    *claims: tuple[dict[str, Any], str, str], published: dict[str, Any] | None = None, x_axis: str = "parameters"
) -> list[str]:
    """`claims` are form, verdict and source."""
    rows = []
    for form, verdict, source in claims:
        ((name, values),) = form.items()
        low, high = values.get("range", (None, values.get("limit")))
        tested = {"form": name, "tested_low": low, "tested_high": high}
        plain = {"published": "700 (tested: 1 to 2)", "verdict": verdict, "source": source}
        rows.append(dict.fromkeys(CLAIM_COLUMNS) | plain | tested)
    return phrases(pd.DataFrame(rows, columns=list(CLAIM_COLUMNS)), {"published": published, "x_axis": x_axis})


def phrases(table: pd.DataFrame, spec: dict[str, Any]) -> list[str]:
    found = short_verdicts(table, spec)
    return [" ".join(filter(None, (one["words"], one["mark"], one["verdict"]))) for one in found]


def test_a_claim_on_the_crossover_stands_with_what_was_published() -> None:
    claim = (CROSSING, REPRODUCED, "Somebody")
    assert said(claim, published={"crossover": [1, 2]}) == ["published: 1 to 2 ✓ reproduced"]


def test_what_was_tested_stands_beside_another_value_that_was_published() -> None:
    claim = ({"crossover_between": {"range": [176_806, 703_142]}}, REPRODUCED, "Somebody")
    tested = "tested as 177 k to 703 k ✓ reproduced"
    assert said(claim) == [f"published: 700, {tested}"]
    assert said(claim, published={"crossover": [703_142, 703_142]}) == [f"published: 703 k, {tested}"]


def test_sizes_that_were_given_keep_their_last_digit() -> None:
    claim = ({"crossover_between": {"range": [1_414, 12_345]}}, REPRODUCED, "Somebody")
    assert said(claim, x_axis="size") == ["published: 700, tested as 1,414 to 12,345 ✓ reproduced"]


def test_other_claims_are_counted_by_verdict() -> None:
    others = [(OTHER, verdict, "Somebody") for verdict in (DIFFERS, DIFFERS, REPRODUCED)]
    assert said(*others) == ["3 published statements: ✓ 1 reproduced", "✗ 2 differ"]
    assert said((CROSSING, NOT_TESTABLE, "Somebody"), *others[:2]) == [
        "published: 700, tested as 1 to 2 – not testable here",
        "2 more published statements: ✗ 2 differ",
    ]
    assert said(*others[:1]) == ["published statement: ✗ differs".replace("published", "1 published", 1)]


def test_two_claims_on_crossovers_belong_to_no_single_answer() -> None:
    assert said((CROSSING, REPRODUCED, "A"), (CROSSING, DIFFERS, "A")) == [
        "2 published statements: ✓ 1 reproduced",
        "✗ 1 differs",
    ]


def test_statements_of_our_own_hold_or_do_not() -> None:
    assert said((CROSSING, REPRODUCED, OURS), (OTHER, REPRODUCED, OURS)) == ["2 statements of our own: ✓ 2 hold"]


def test_without_claims_the_statement_stands_untested() -> None:
    assert said(published={"statement": "it pays", "source": "A"}) == ["published: it pays"]
    assert said() == []


def test_a_machine_that_lacks_a_claim_does_not_shift_the_others() -> None:
    """The file names the crossover first; machine b only trained, so the quality is the first of its rows."""
    plain = dict.fromkeys(CLAIM_COLUMNS) | {
        "published": "700 (tested: 1 to 2)",
        "verdict": REPRODUCED,
        "source": "Somebody",
    }
    crossing = plain | {"machine": "a", "form": "crossover_between", "tested_low": 1, "tested_high": 2}
    quality = plain | {"form": "same_quality", "published": "within ±0.005"}
    table = pd.DataFrame([crossing, quality | {"machine": "a"}, quality | {"machine": "b"}])
    spec = {"claims": [CROSSING, {"same_quality": {"within": 0.005}}], "published": None, "x_axis": "size"}
    assert phrases(table, spec) == [
        "a, published: 700, tested as 1 to 2 ✓ reproduced",
        "a, 1 more published statement: ✓ reproduced",
        "b, 1 published statement: ✓ reproduced",
    ]
