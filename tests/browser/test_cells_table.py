"""The table of cells in a browser: sorting, filters, export, links."""

from __future__ import annotations

import csv
import io

import pytest

from crossover.tables.registry import SUMMARIES
from opened_page import Open, Opened
from report_pages import Page

pytestmark = pytest.mark.slow

KEY = "widths/disc_mlp/plain/resident/100/fp32/eager/400/cuda"


def filter_by(opened: Opened, key: str, text: str) -> None:
    opened.page.fill(f'#cell-table .tabulator-col[tabulator-field="{key}"] input', text)
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_timeout(400)  # the table waits 300 ms for more keys


def download(opened: Opened) -> list[dict[str, str]]:
    with opened.page.expect_download() as waited:
        opened.page.click("#cell-table .download")
    text = waited.value.path().read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_numbers_sort_as_numbers(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    title = opened.page.locator('#cell-table .tabulator-col[tabulator-field="step_time_s"] .tabulator-col-title')
    assert title.inner_text() == "time per step, ms"
    title.click()
    # The shortest times are those of the depths, 2^n x 10 us and 2^n x 15 us.
    assert opened.column("step_time_s")[:4] == ["0.0400", "0.0600", "0.0800", "0.100"]
    title.click()
    assert opened.column("step_time_s")[0] == "1.60"
    opened.page.locator('#cell-table .tabulator-col[tabulator-field="size"] .tabulator-col-title').click()
    sizes = [int(text.replace(",", "")) for text in opened.column("size")]
    assert sizes == sorted(sizes)


def test_search_and_column_filters(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    count = opened.page.locator("#cell-table .count")
    assert count.inner_text() == "26 of 26 cells"
    opened.page.fill("#cell-table .search", "8 GB")
    opened.page.wait_for_function("document.querySelector('#cell-table .count').textContent === '1 of 26 cells'")
    assert opened.column("status") == ["oom"]
    opened.page.click("#cell-table .clear")
    opened.page.wait_for_function("document.querySelector('#cell-table .count').textContent === '26 of 26 cells'")
    filter_by(opened, "device", "cuda")
    filter_by(opened, "step_time_s", "> 0.3")
    assert count.inner_text() == "9 of 26 cells"  # one of the GPU's ten widths has no time, and every depth is faster
    filter_by(opened, "size", "200 to 400")
    assert sorted(opened.column("size")) == ["200", "200", "400", "400"]


def test_filtered_cells_are_exported(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    assert len(download(opened)) == len(run.tables.cells)
    filter_by(opened, "study", "widths")
    filter_by(opened, "device", "cpu")
    got = download(opened)
    wanted = run.tables.cells.query("study == 'widths' and device == 'cpu'")
    assert set(got[0]) == set(SUMMARIES)
    assert [int(row["size"]) for row in got] == wanted["size"].tolist()
    assert [row["protocol"] for row in got] == wanted["protocol"].tolist()
    for row, seconds in zip(got, wanted["step_time_s"], strict=True):
        assert abs(float(row["step_time_s"]) / seconds - 1) < 1e-7


def test_no_exported_text_is_a_formula(hostile_run: Page, open_page: Open) -> None:
    opened = open_page(hostile_run.path)
    opened.table()
    rows = download(opened)
    reasons = {row["reason"] for row in rows} - {""}
    assert len(reasons) == 1
    assert all(reason.startswith("'=<script>") for reason in reasons)
    script = "() => ['=1', '+1', '-1', '@a', '\\t=1', '\\r=1', 'plain', -1].map(Crossover.csvText)"
    assert opened.page.evaluate(script) == ["'=1", "'+1", "'-1", "'@a", "'\t=1", "'\r=1", "plain", -1]


def test_filters_of_numbers_are_in_the_unit_of_the_column(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    cases = [
        ("> 10", 11, True),
        ("≤ 5", 6, False),
        ("2 to 4", 4, True),
        ("12", 123, True),
        ("> 0", None, False),
        (">703k", 702999, False),
        ("703 k", 703142, True),
        ("0.71 million", 703142, False),
        ("= 1.23", 1.23456, True),
        ("> many", 5, False),
        (" ", 5, True),
    ]
    script = "(cases) => cases.map(([filter, value]) => Crossover.numberFilter(filter, value))"
    assert opened.page.evaluate(script, [case[:2] for case in cases]) == [case[2] for case in cases]
    assert opened.page.evaluate("Crossover.numberFilter('> 1', 0.002, 1000)") is True
    read = opened.page.evaluate("['> many', '> 1,5', '5 kg', '1 to 2'].map(Crossover.isNumberFilter)")
    assert read == [False, False, False, True]


def test_a_link_to_a_cell_shows_its_details(run: Page, open_page: Open) -> None:
    opened = open_page(run.path, f"#cell={KEY}")
    opened.page.wait_for_selector("#cell-table .cell pre")
    cell = opened.page.locator("#cell-table .cell")
    assert cell.locator("h3").inner_text() == "widths, 400 neurons, GPU (Brand G1)"
    assert "time per step: 0.400 ms" in cell.inner_text()
    assert "machine:" not in cell.inner_text()  # it has no name
    assert cell.locator("pre").inner_text() == (
        """python3 scripts/measure_cell.py '{"cell": {"study": "widths", "protocol": "resident", "size": 400}}' """
        "--device=cuda --trial=1 '--output=results/a b/trial-1.parquet'"
    )
    assert opened.page.locator("#cell-table .tabulator-selected").count() == 1
    cell.locator("a").click()
    assert opened.page.evaluate("location.hash") == "#study-widths"
