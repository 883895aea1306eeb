"""Numbers as the templates write them."""

from __future__ import annotations

import pytest

from crossover.report.formats import amount_text, escaped_markdown, in_code, off_text, span_text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (176_806, "parameters", "177 k"),
        (12_345, "neurons", "12,345"),
        (12_345.6, "neurons", "12.3 k"),
        (0.00412, "s", "4.12 ms"),
    ],
)
def test_an_amount_is_written_in_its_unit(value: float, unit: str, text: str) -> None:
    assert amount_text(value, unit) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.005, "under 1 %"), (0.7, "30 %"), (0.25, "4×")])
def test_how_far_a_ratio_is_off(ratio: float, text: str) -> None:
    assert off_text(ratio) == text


def test_a_span_has_one_text_where_both_ends_read_the_same() -> None:
    assert span_text([0.003, 0.001], "seconds") == "1.00 ms to 3.00 ms"
    assert span_text([2.001, 2.002], "number") == "2.00"


def test_markdown_shows_text_literally() -> None:
    assert escaped_markdown("a|b *c*\n<d> $e$") == r"a\|b \*c\* \<d\> \$e\$"
    assert in_code("a `b` c") == "`` a `b` c ``"
