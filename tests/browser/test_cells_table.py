"""The table of cells in a browser: sort, filter, export, links."""

from __future__ import annotations

import csv
import io
from urllib.parse import quote

import pytest

from opened_page import Open, Opened
from report_pages import Run

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


def test_numbers_sort_as_numbers(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    title = opened.page.locator('#cell-table .tabulator-col[tabulator-field="step_time_s"] .tabulator-col-title')
    assert title.inner_text() == "time per step, ms"
    title.click()
    # The shortest are the depths' 2^n x 10 us and 2^n x 15 us.
    assert opened.column("step_time_s")[:4] == ["0.04000", "0.06000", "0.08000", "0.1000"]
    title.click()
    assert opened.column("step_time_s")[0] == "1.600"
    opened.page.locator('#cell-table .tabulator-col[tabulator-field="size"] .tabulator-col-title').click()
    sizes = [int(text.replace(",", "")) for text in opened.column("size")]
    assert sizes == sorted(sizes)


def test_the_keyboard_sorts(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    opened.page.locator('#cell-table .tabulator-col[tabulator-field="step_time_s"]').focus()
    opened.page.keyboard.press("Enter")
    assert opened.column("step_time_s")[0] == "0.04000"


def test_the_search_and_the_heads_filter(run: Run, open_page: Open) -> None:
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
    assert count.inner_text() == "9 of 26 cells"  # of the GPU's ten widths one has no time, and no depth takes as long
    filter_by(opened, "size", "200 to 400")
    assert opened.column("size") == ["200", "200", "400", "400"]


def test_each_word_of_the_search_may_stand_in_another_column(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    # Three sizes of the depths on either device.
    for text, wanted in (("depths", 6), ("depths cuda", 3), (" CUDA   depths ", 3), ("depths cuda 11xyz", 0)):
        opened.page.fill("#cell-table .search", text)
        said = f"{wanted} of 26 cells"
        script = "(said) => document.querySelector('#cell-table .count').textContent === said"
        opened.page.wait_for_function(script, arg=said)


def test_the_exported_cells_are_those_left_by_the_filters(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    assert len(download(opened)) == len(run.cells)
    filter_by(opened, "study", "widths")
    filter_by(opened, "device", "cpu")
    got = download(opened)
    wanted = run.cells.query("study == 'widths' and device == 'cpu'")
    assert set(got[0]) == set(run.cells.columns)
    assert [int(row["size"]) for row in got] == wanted["size"].tolist()
    assert [row["protocol"] for row in got] == wanted["protocol"].tolist()
    for row, seconds in zip(got, wanted["step_time_s"], strict=True):
        assert abs(float(row["step_time_s"]) / seconds - 1) < 1e-7


def test_no_exported_cell_is_a_formula(hostile_run: Run, open_page: Open) -> None:
    opened = open_page(hostile_run.path)
    opened.table()
    rows = download(opened)
    reasons = {row["reason"] for row in rows} - {""}
    assert len(reasons) == 1
    assert all(reason.startswith("'=<script>") for reason in reasons)
    script = "() => ['=1', '+1', '-1', '@a', '\\t=1', '\\r=1', 'plain', -1].map(Crossover.csvText)"
    assert opened.page.evaluate(script) == ["'=1", "'+1", "'-1", "'@a", "'\t=1", "'\r=1", "plain", -1]


def test_a_number_is_asked_for_in_the_unit_of_its_column(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    cases = [
        ("> 10", 11, True),
        (">10", 10, False),
        (">= 10", 10, True),
        ("<5", 4, True),
        ("≤ 5", 6, False),
        ("= 5", 5, True),
        ("2 to 4", 4, True),
        ("2-4", 5, False),
        ("12", 123, True),
        ("12", 23, False),
        ("> 0", None, False),
        ("703,142", 703142, True),
        ("703,1", 703142, True),
        ("703,1", 7031, False),
        ("703142", 703142, True),
        ("1,5", 150, False),
        ("> 703 k", 703142, True),
        (">703k", 702999, False),
        (">1 million", 1000001, True),
        (">1million", 703142, False),
        ("< 1,000,000", 703142, True),
        ("<= 2.5 billion", 2500000000, True),
        ("100 k to 1 Million", 703142, True),
        ("100 k to 700,000", 703142, False),
        ("703 k", 703142, True),
        ("703 k", 7031420, False),
        ("0.70 million", 703142, True),
        ("0.71 million", 703142, False),
        ("0.1000", 0.1, True),
        ("= 1.235", 1.23456, True),
        ("1.23456", 1.23456, True),
        ("> many", 5, False),
        (" ", 5, True),
    ]
    script = "(cases) => cases.map(([asked, value]) => Crossover.numberFilter(asked, value))"
    assert opened.page.evaluate(script, [case[:2] for case in cases]) == [case[2] for case in cases]
    assert opened.page.evaluate("Crossover.numberFilter('> 1', 0.002, 1000)") is True
    texts = ["> many", ">", "1.2.3", "> 1,5", "5 kg", "1 to", "12 k", "", "1,5"]
    read = opened.page.evaluate("(texts) => texts.map(Crossover.isNumberFilter)", texts)
    assert read == [False, False, False, False, False, False, True, True, True]


def test_a_number_that_cannot_be_read_is_said_to_be_none(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    count = opened.page.locator("#cell-table .count")
    typed = opened.page.locator('#cell-table .tabulator-col[tabulator-field="size"] input')
    filter_by(opened, "size", "> many")
    assert count.inner_text().startswith("0 of 26 cells; size: “> many” is not a number, as ")
    assert count.get_attribute("role") == "status"
    assert typed.get_attribute("aria-invalid") == "true"
    assert opened.serious() == []
    filter_by(opened, "size", "1,600")
    assert set(opened.column("size")) == {"1,600"}
    assert count.inner_text() == "4 of 26 cells"
    assert typed.get_attribute("aria-invalid") == "false"


def test_a_device_is_found_by_the_name_that_the_page_gives_it(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    for text in ("gpu", "GPU", "cuda", "brand g1"):
        filter_by(opened, "device", text)
        assert set(opened.column("device")) == {"cuda"}, text
    filter_by(opened, "device", "cpu")
    assert set(opened.column("device")) == {"cpu"}


def test_a_download_is_called_filtered_where_it_is(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    for text, name in (("", "cells.csv"), ("gpu", "cells_filtered.csv"), ("", "cells.csv")):
        filter_by(opened, "device", text)
        with opened.page.expect_download() as waited:
            opened.page.click("#cell-table .download")
        assert waited.value.suggested_filename == name


def test_a_link_leads_to_a_cell_with_all_that_is_known_of_it(run: Run, open_page: Open) -> None:
    opened = open_page(run.path, f"#cell={KEY}")
    opened.page.wait_for_selector("#cell-table .cell pre")
    cell = opened.page.locator("#cell-table .cell")
    assert cell.locator("h3").inner_text() == "widths, 400 neurons, GPU (Brand G1)"
    assert "time per step: 0.4000 ms" in cell.inner_text()
    assert "machine:" not in cell.inner_text()  # it has no name
    assert cell.locator("pre").inner_text() == (
        "python3 scripts/measure_cell.py --study=widths --size=400 --device=cuda --protocol=resident --trial=1 "
        "--output=results/a b/trial-1.parquet"
    )
    assert opened.page.locator("#cell-table .tabulator-selected").count() == 1
    cell.locator("a").click()
    assert opened.page.evaluate("location.hash") == "#study-widths"


def test_a_link_to_a_cell_that_is_not_there_says_so(run: Run, open_page: Open) -> None:
    for key in ("widths/none", "%E0%A4%A", "<script>"):
        opened = open_page(run.path, f"#cell={key}")
        opened.page.wait_for_selector("#cell-table .cell:not([hidden])")
        assert "a cell that this run does not have" in opened.page.locator("#cell-table .cell").inner_text()


def test_a_row_leads_to_its_cell_whatever_the_filters(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.table()
    link = opened.page.locator("#cell-table .tabulator-row a[href^='#cell=']").first
    assert link.get_attribute("href") == "#cell=widths/disc_mlp/plain/as_published/100/fp32/eager/100/cpu"
    filter_by(opened, "device", "cpu")
    opened.page.evaluate(f"location.hash = '#cell={KEY}'")
    opened.page.wait_for_selector("#cell-table .cell pre")
    opened.page.wait_for_selector("#cell-table .tabulator-selected")


def test_a_link_opens_what_its_target_lies_in(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.page.evaluate("document.querySelector('details.explorer[data-study=widths] summary').id = 'inside & out'")
    opened.page.evaluate(f"location.hash = '#{quote('inside & out')}'")
    opened.page.wait_for_selector("details.explorer[data-study=widths][open] svg text")
    for odd in ("#nowhere", "#%E0%A4%A"):
        opened.page.evaluate(f"location.hash = '{odd}'")


def test_a_chart_leads_to_its_cells(run: Run, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.explore("depths")
    opened.page.click('details.explorer[data-study="depths"] .controls button:has-text("as a table")')
    opened.page.wait_for_function("document.querySelector('#cell-table .count').textContent === '6 of 26 cells'")
