from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pytest

from crossover.report.report_figures import FigureFile, link_to
from crossover.statistics.cores_worth import compare_cores
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS
from crossover.statistics.unfinished import Unfinished
from report_pages import METHOD, html_of, tables_of

PowerLaws = Callable[..., pd.DataFrame]


class Page(HTMLParser):
    """What a browser would load, and what a reader would read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.in_code = False
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.in_code = tag in ("style", "script")
        self.ids += [value or "" for name, value in attributes if name == "id"]
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "srcset", "data")]

    def handle_endtag(self, _tag: str) -> None:
        self.in_code = False

    def handle_data(self, data: str) -> None:
        if not self.in_code:
            self.words.append(data)


@pytest.fixture
def figure(tmp_path: Path) -> FigureFile:
    path = tmp_path / "disc_depth" / "times.svg"
    path.parent.mkdir()
    path.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    return FigureFile(path)


CLAIM = {
    "study": "disc_depth",
    "statement": "it starts between 100 and 100,000",
    "crossover_between": {"range": [100, 100_000]},
}


def page(
    rows: pd.DataFrame,
    figure: FigureFile,
    title: str = "A title",
    claims: Sequence[Mapping[str, Any]] = (CLAIM,),
    studies: Mapping[str, str] = MappingProxyType({"disc_depth": "From which size on?"}),
    searches: pd.DataFrame | None = None,
    prices: Mapping[str, float] | None = None,
    cores_worth: pd.DataFrame | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
    unfinished: Sequence[Unfinished] = (),
    partial: bool = False,
    **changes: Any,
) -> str:
    published = {"statement": "it starts at 700", "source": "Somebody (2019)"}
    specs = {
        name: {"title": title, "question": asked, "published": published, "figures": ["times"]}
        | {"claims": [claim for claim in claims if claim["study"] == name]}
        | changes
        for name, asked in studies.items()
    }
    more = {"searches": searches, "cores_worth": cores_worth}
    tables = tables_of(rows, claims, prices=prices, unfinished=unfinished, **more)
    return html_of(specs, tables, [figure], price_per_hour=prices, partial=partial, **facts)


def assert_in_order(text: str, said: Sequence[str]) -> None:
    """All of the words stand in the text, one after the other."""
    places = [text.index(words) for words in said]
    assert places == sorted(places)


def test_the_page_opens_with_the_answer_and_the_verdict_in_one_line(power_laws: PowerLaws, figure: FigureFile) -> None:
    text = Page(page(power_laws({2: 100, 4: 100_000}, trials=3), figure)).text
    opening = text[: text.index("Do the published statements hold here?")]
    said = (
        "Measured on GPU (Brand G1), 2 host threads and CPU (Brand C1), 2 threads",
        "Trust: 3 trials a cell; no cell flagged; every measured cell has a result.",
        "From which size on?",
        "GPU from 1,000 parameters on (95 %: 984 to 1,020)",
        "published: 100 to 100,000 ✓ reproduced",
    )
    assert_in_order(opening, said)
    assert "beats the CPU" not in opening


def test_the_card_sets_an_answer_apart_from_its_notes_and_from_no_other_brackets(
    power_laws: PowerLaws, figure: FigureFile
) -> None:
    """Only the interval is a note; the name of one of two GPUs, and why there is no answer, belong to the answer."""
    plain = power_laws({2: 100, 4: 100_000}, trials=3)
    assert "<strong>GPU from 1,000 parameters on</strong> (95\u00a0%: 984 to 1,020)</p>" in page(plain, figure)
    other = plain[plain["device"] == "cuda"].assign(device="xpu", device_name="Brand G2")
    html = page(pd.concat([plain, other]), figure)
    assert "<strong>GPU (Brand G2) from 1,000 parameters on</strong> (95\u00a0%: 984 to 1,020)</p>" in html
    ahead = power_laws({2: 100, 4: 100_000}, gpu_s=1e-5, trials=3)
    html = page(pd.concat([ahead, ahead[ahead["device"] == "cuda"].assign(device="xpu", device_name="G (2)")]), figure)
    said = "GPU (G (2)) at every size measured, from 100 parameters: 10.0 to 10,000 times as fast"
    assert f"<strong>{said}</strong></p>" in html


def test_the_answer_at_length_stands_in_the_study(power_laws: PowerLaws, figure: FigureFile) -> None:
    text = Page(page(power_laws({2: 100, 4: 100_000}, trials=3), figure)).text
    section = text[text.index("A title #") :]
    assert "beats the CPU (Brand C1) from about 1,000 " in section


def test_the_statements_follow_the_answers(power_laws: PowerLaws, figure: FigureFile) -> None:
    text = Page(page(power_laws({2: 100, 4: 100_000}, trials=3), figure)).text
    table = text[text.index("Do the published statements hold here?") : text.index("A title #")]
    said = (
        "Of 1 published statement, 1 is reproduced.",
        "From which size on?",
        "Source: Somebody (2019)",
        "it starts between 100 and 100,000",
        "100 to 100,000",
        "1,000 (984 to 1,020)",
        "crossover in parameters",
        "✓ reproduced",
        "the whole 95 % interval lies within 100 to 100,000",
    )
    assert_in_order(table, said)


def test_the_studies_are_in_the_order_of_the_config(power_laws: PowerLaws, figure: FigureFile) -> None:
    """The claims arrive in the other order; a study without any has its answer, but no row in the table of claims."""
    rows = pd.concat([power_laws({2: 100, 4: 100_000}, trials=3).assign(study=name) for name in ("b", "c", "a")])
    claims = [{**CLAIM, "study": "a", "statement": "of a"}, {**CLAIM, "study": "b", "statement": "of b"}]
    text = Page(page(rows, figure, claims=claims, studies={"b": "B?", "c": "C?", "a": "A?"})).text
    opening, rest = text.split("Do the published statements hold here?", 1)
    table = rest[: rest.index("A title #")]
    for part, said in (
        (opening, ("B?", "C?", "published: it starts at 700", "A?")),
        (table, ("B?", "of b", "A?", "of a")),
    ):
        assert_in_order(part, said)
    assert "C?" not in table
    assert opening.count("GPU from 1,000 parameters on") == 3


def test_the_table_of_claims_names_its_rows_and_columns(power_laws: PowerLaws, figure: FigureFile) -> None:
    html = page(power_laws({2: 100, 4: 100_000}, trials=3), figure)
    table = html[html.index('<table class="claims">') : html.index("</table>")]
    assert [table.count(f'scope="{scope}"') for scope in ("col", "rowgroup", "row")] == [5, 1, 1]
    assert table.index("<caption>") < table.index("<thead>")
    assert '<a href="#study-disc_depth"><bdi>From which size on?</bdi></a>' in table


def test_every_link_within_the_page_leads_somewhere_and_every_heading_has_one(
    power_laws: PowerLaws, figure: FigureFile
) -> None:
    """Also where studies are named as sections are."""
    names = ("cells", "claims", "provenance", "answers")
    rows = pd.concat([power_laws({2: 100, 4: 100_000}, trials=2).assign(study=name) for name in names])
    claims = [{**CLAIM, "study": name} for name in names]
    html = page(rows, figure, claims=claims, studies=dict.fromkeys(names, "Where?"))
    shown = Page(html)
    assert len(shown.ids) == len(set(shown.ids))
    links = {address[1:] for address in shown.addresses if address.startswith("#")}
    assert links <= set(shown.ids)
    headings = re.findall(r"<h[23][^>]*>", html[html.index("Do the published") :])
    assert len(headings) > 4
    assert all(re.search(r'id="([^"]+)"', heading)[1] in links for heading in headings)  # type: ignore[index]


def test_the_lead_figure_comes_first_and_the_others_wait(power_laws: PowerLaws, figure: FigureFile) -> None:
    figure.path.write_text('<svg width="72pt" height="90pt" xmlns="http://www.w3.org/2000/svg"/>')
    html = page(power_laws({2: 100, 4: 100_000}), figure)
    images = re.findall(r'<img [^>]*?width="(\d+)" height="(\d+)" loading="(\w+)"', html)
    assert images == [("96", "120", "eager"), ("96", "120", "lazy")]
    assert html.index("<img") < html.index("Do the published statements hold here?")


def test_a_note_stands_at_the_very_top(power_laws: PowerLaws, figure: FigureFile) -> None:
    html = page(power_laws({2: 100, 4: 100_000}), figure, facts={"note": "3 of 4 trials <b>"})
    assert html.index("3 of 4 trials &lt;b&gt;") < html.index("Measured on")


def test_a_verdict_is_told_without_colour(power_laws: PowerLaws, figure: FigureFile) -> None:
    claims = [{**CLAIM, "crossover_between": {"range": limits}} for limits in ([100, 1000], [1, 50])]
    html = page(power_laws({2: 100, 4: 100_000}, trials=3), figure, claims=claims)
    text = Page(html).text
    assert "– not testable here" in text
    assert "✗ differs" in text
    assert "1 differs, 1 is not testable here" in text
    assert "add trials" in text


def test_a_study_without_claims_says_what_was_published(power_laws: PowerLaws, figure: FigureFile) -> None:
    text = Page(page(power_laws({2: 100, 4: 100_000}, trials=3), figure, claims=())).text
    assert "Do the published statements" not in text
    said = (
        "From which size on?",
        "GPU from 1,000 parameters on",
        "published: it starts at 700",
        "A title #",
        "beats the CPU (Brand C1) from about 1,000",
        "Published: it starts at 700 . Source: Somebody (2019)",
    )
    assert_in_order(text, said)


def test_cost_models_stand_in_the_study_with_their_misses(power_laws: PowerLaws, figure: FigureFile) -> None:
    """The CPU takes 1 us a parameter, which are 10 n^2; the GPU 1 ms at any size."""
    html = page(power_laws({n: 10 * n**2 for n in (2, 4, 8, 16, 32)}, trials=2), figure)
    folded = html[html.index("<summary>Cost model: a guide, not a measurement") :]
    table = folded[: folded.index("</table>")]
    rows = [Page(row).text for row in table.split("<tr>")[2:]]
    assert len(rows) == 2
    assert re.search(r"CPU \(Brand C1\) .* 1e-05 2\.00 \S+ % \S+ % 5, 2 to 32$", rows[0])
    assert re.search(r"GPU \(Brand G1\) .* 5, 2 to 32$", rows[1])
    assert "predict_time.py --results results --study disc_depth" in table


def test_a_line_without_a_cost_model_says_why(power_laws: PowerLaws, figure: FigureFile) -> None:
    text = Page(page(power_laws({2: 100, 4: 100_000}), figure)).text
    assert text.count("none: a model takes 4 sizes with a time or more, not 2") == 2


def test_the_page_needs_nothing_else(power_laws: PowerLaws, figure: FigureFile) -> None:
    html = page(power_laws({2: 100, 4: 100_000}), figure)
    shown = Page(html)
    loaded = [address for address in shown.addresses if address != METHOD]
    assert all(address.startswith(("#", "data:image/svg+xml;base64,")) for address in loaded)
    assert len([address for address in shown.addresses if address.startswith("data:")]) == 2
    assert not {"link", "iframe"} & set(shown.tags)
    # What its scripts do is tested in a browser: tests/browser.
    assert not re.search(r"url\(|@import|https?://", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))


HOSTILE = "<script>alert('x')</script> & \"quotes\" 🙂 \u202eשלום"


def test_what_users_write_is_text_whatever_it_holds(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    rows.loc[rows.index[-1], ["status", "reason"]] = ["invalid", HOSTILE]
    claim = {**CLAIM, "statement": HOSTILE, "source": HOSTILE}
    asked = {"disc_depth": HOSTILE}
    html = page(rows, figure, HOSTILE, claims=[claim], studies=asked, facts={"note": HOSTILE})
    shown = Page(html)
    assert shown.tags.count("script") == html.count("<script>") + html.count("<script type=")
    assert HOSTILE not in html
    assert shown.text.count(HOSTILE) >= 7  # note, question thrice, title, statement, source, reason
    assert not re.search(r'="[^"]*"quotes', html)  # within attributes, quotes are escaped


def test_what_users_write_stands_apart_from_the_words_around_it(power_laws: PowerLaws, figure: FigureFile) -> None:
    """Text that turns the direction of writing must not turn that of our own words: it fills an element of its own."""
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    rows.loc[rows.index[-1], ["status", "reason"]] = ["invalid", HOSTILE]
    claims = [{**CLAIM, "statement": HOSTILE, "source": HOSTILE}]
    html = page(rows, figure, HOSTILE, claims=claims, studies={"disc_depth": HOSTILE}, facts={"note": HOSTILE})
    body = html[html.index("<header>") : html.index('<section id="cell-table"')]
    places = [(match.start(), match.end()) for match in re.finditer(r"&lt;script&gt;.*?\u202e\w+", body)]
    shown = [(start, end) for start, end in places if body.rindex("<", 0, start) < body.rindex(">", 0, start)]
    assert len(shown) >= 7
    for start, end in shown:
        tag = body[body.rindex("<", 0, start) : start]
        assert tag == "<bdi>" or 'dir="auto"' in tag, tag
        assert tag.endswith(">")
        assert body[end] == "<"


def test_every_cell_is_in_the_table_and_failures_are_named(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 3: 3000, 4: 100_000})
    lost = (rows["size"] == 4) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "reason"]] = ["oom", "out of memory, 8 GB wanted"]
    rows.loc[lost, "step_time_s"] = None
    shown = Page(page(rows, figure))
    assert shown.tags.count("tr") >= 2 + 1 + 6
    assert "out of memory, 8 GB wanted" in shown.text


def test_an_invalid_cell_is_shown_with_its_reason(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    lost = (rows["size"] == 4) & (rows["device"] == "cuda") & (rows["trial"] == 2)
    rows.loc[lost, ["status", "reason"]] = ["invalid", "other compute processes on the GPU (1): stop them"]
    text = Page(page(rows, figure)).text
    failures = text[text.index("What is missing, failed or flagged") :]
    assert re.search(r"invalid disc_depth .*1 trial other compute processes on the GPU \(1\): stop them", failures)


def test_the_page_links_to_the_method(power_laws: PowerLaws, figure: FigureFile) -> None:
    shown = Page(page(power_laws({2: 100, 4: 100_000}), figure))
    assert shown.addresses.count(METHOD) == 1
    assert "docs/method.md in the checkout" in shown.text


@pytest.mark.parametrize(
    ("report", "link"),
    [
        ("results/report.html", "../docs/method.md"),
        ("results/quick/report.html", "../../docs/method.md"),
        ("/data/my results/report.html", "../../house/a%20b/docs/method.md"),
    ],
)
def test_a_link_is_relative_to_the_page(report: str, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getcwd", lambda: "/house/a b")
    assert link_to(Path("docs/method.md"), Path(report)) == link


def test_raised_flags_come_with_their_remedy(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000}, flags=["quota"])
    shown = Page(page(rows, figure))
    assert "4 of 4 cells flagged: 4 held back by a CPU quota ( quota )" in shown.text
    assert "raise the quota" in shown.text
    # On the first screen and in the study it leads to its explanation.
    assert (shown.addresses.count("#flag-quota"), shown.ids.count("flag-quota")) == (2, 1)


def test_a_page_without_accelerator_says_what_is_missing(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    text = Page(page(rows[rows["device"] == "cpu"], figure)).text
    assert "half of the answer is missing" in text


@pytest.mark.parametrize("kind", ["times", "throughput", "comparison"])
def test_the_head_of_a_page_without_accelerator_says_so_whatever_is_asked(
    power_laws: PowerLaws, figure: FigureFile, kind: str
) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    said = "This run used the CPU only, no GPU: the GPU's half of every answer is missing."
    asked = {"figures": [kind], "steps_per_run": None}
    text = Page(page(rows[rows["device"] == "cpu"], figure, claims=[], **asked)).text
    assert text.count(said) == 1
    assert text.index(said) < text.index("From which size on?")
    assert said not in Page(page(rows, figure, claims=[], **asked)).text


def test_the_figures_stand_in_the_order_given_with_their_captions(tmp_path: Path, figure: FigureFile) -> None:
    other = FigureFile(tmp_path / "other_study" / "comparison.svg")
    assert (figure.study, other.study) == ("disc_depth", "other_study")
    assert figure.caption.startswith("Time over size")
    assert other.caption.startswith("A row a cell")


def test_what_a_figure_shows_stands_above_it(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    assert figure.takeaway == ""
    assert 'class="takeaway"' not in page(rows, figure)
    figure.path.with_suffix(".txt").write_text("The GPU takes less time <b>& how</b>.", encoding="utf-8")
    text = page(rows, figure)
    assert text.index("<figure>") < text.index("less time &lt;b&gt;&amp; how&lt;/b&gt;.") < text.index("<figcaption>")


def test_the_largest_batches_of_a_study_are_listed(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    plain = dict.fromkeys(SEARCH_COLUMNS) | {axis: rows.iloc[0][axis] for axis in SEARCH_AXES} | {"tries_count": 23}
    ok = {"status": "ok", "largest": 14336, "smallest_failing": 14337, "throughput_samples_per_s": 24_000.0}
    searches = [
        {**plain, **ok, "device": "cuda", "device_name": "Brand G1", "memory_limit_bytes": 8 * 10**9},
        {**plain, "status": "timeout", "reason": "batch 64: not done after 300 s"},
        {**plain, **ok, "study": "another", "largest": 77},
    ]
    table = pd.DataFrame(searches).astype({"largest": "Int64", "memory_limit_bytes": "Int64"})
    shown = Page(page(rows, figure, searches=table)).text
    assert "GPU (Brand G1) largest batch that fits: 14,336 (limit 8 GB) 24,000/s 23" in shown
    assert "CPU largest batch not found: timeout 23 batch 64: not done after 300 s" in shown
    assert "77" not in shown
    assert "The largest batch that fits" not in Page(page(rows, figure)).text


def test_every_line_of_several_precisions_is_named(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = pd.concat(
        [power_laws({2: 100, 4: 100_000}, precision=name, gpu_s=s) for name, s in (("fp32", 1e-3), ("tf32", 1e-9))]
    )
    text = Page(page(rows, figure, claims=())).text
    assert "data resident on the device, batch 100, fp32: On this machine" in text
    assert "data resident on the device, batch 100, tf32: On this machine" in text


def test_what_the_loader_takes_is_said_before_the_claims_and_ours_is_marked(
    row: Callable[..., dict[str, Any]], figure: FigureFile
) -> None:
    """1 - 2 ms / 20 ms = 90 % of a step; 0.1 of the time is less than half."""
    times = [("as_published", 0.02), ("resident", 0.002)] * 2
    rows = pd.DataFrame(
        [
            row(device="cuda", protocol=protocol, step_time_s=seconds, trial=trial, batch_size=100)
            for trial, (protocol, seconds) in enumerate(times, 1)
        ]
    )
    claim = {
        "study": "disc_depth",
        "statement": "the loader takes most of it",
        "source": "ours",
        "ratio_below": {
            "metric": "step_time_s",
            "of": {"protocol": "resident"},
            "over": {"protocol": "as_published"},
            "limit": 0.5,
        },
    }
    run = {"epochs": 20, "samples": 1000}
    text = Page(page(rows, figure, claims=[claim], figures=["comparison"], steps_per_run=run)).text
    opening = text[: text.index("A title #")]
    assert (
        "bounds the run: it takes 90 % of a step (95 % intervals from 90 % to 90 %). An epoch takes 200 ms with the"
        in text[text.index("A title #") :]
    )
    said = (
        "Loading takes 90 % of a step on the GPU (95 %: 90 % to 90 %)",
        "1 statement of our own: ✓ holds",
        "Do the published statements hold here?",
        "Of 1 statement of our own, 1 holds.",
        "the loader takes most of it ours",
        "none (tested: below 0.5)",
        "0.1 (0.1 to 0.1)",
    )
    assert_in_order(opening, said)
    assert "bounds the run" not in Page(page(rows, figure, claims=[claim], steps_per_run=run)).text


def test_other_pairs_and_costs_stand_under_the_figures(power_laws: PowerLaws, figure: FigureFile) -> None:
    """Five times the price: the crossover in money is at 5000 parameters; the answer above stays that in time."""
    rows = pd.concat([power_laws({2: 100, 4: 100_000}, precision=name) for name in ("fp32", "amp-bf16")])
    text = Page(page(rows, figure, claims=(), prices={"cpu": 0.8, "cuda": 4.0})).text
    opening, section = text[: text.index("A title #")], text[text.index("Other crossovers #") :]
    assert "The GPU costs less than the CPU from about 5,000 parameters on; one trial a cell, indicative" in section
    assert "amp-bf16 against fp32, on the GPU" in section
    assert "0.8 USD an hour without an accelerator, 4 USD an hour with one (cuda)" in section
    assert "RAPL" not in section
    assert "in time, fp32 / amp-bf16: GPU from about 1,000 parameters on" in opening
    assert "in money, fp32 / amp-bf16: GPU from about 5,000 parameters on" in opening
    rows["energy_per_step_j"] = rows["step_time_s"] * 100
    assert "RAPL" in Page(page(rows, figure, claims=())).text


def test_without_other_pairs_there_is_no_table_of_them(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    text = Page(page(rows, figure)).text
    assert "Other crossovers" not in text
    assert "transfers" not in text
    several = pd.concat([rows, power_laws({2: 100, 4: 100_000}, precision="tf32")])
    assert (
        "Other crossovers"
        not in Page(page(several, figure, claims=(), figures=["comparison"], steps_per_run=None)).text
    )


def test_both_protocols_stand_side_by_side(power_laws: PowerLaws, figure: FigureFile) -> None:
    rows = pd.concat(
        [
            power_laws({2: 100, 4: 100_000}, protocol=name, gpu_s=s)
            for name, s in (("as_published", 2e-3), ("resident", 1e-3))
        ]
    )
    text = Page(page(rows, figure, claims=())).text
    section = text[text.index("With and without transfers") :]
    assert "2.7 linear layers, 2,000 parameters 2.52 linear layers, 1,000 parameters" in section
    assert "2.00 times as many parameters with transfers" in section


def test_the_cores_that_a_gpu_is_worth_are_answered_and_tabled(power_laws: PowerLaws, figure: FigureFile) -> None:
    """A GPU of 1 ms and a CPU of 2 ms on 2 threads; made to take 8 ms on one."""
    rows = power_laws({4: 2000}, trials=2).assign(threads=2)
    one = rows[rows["device"] == "cpu"].assign(
        device="cpu-1", threads=1, step_time_s=lambda own: own["step_time_s"] * 4
    )
    rows = pd.concat([rows, one])
    text = Page(page(rows, figure, cores_worth=compare_cores(rows))).text
    assert "At 4 linear layers the GPU (Brand G1) is worth more than 2 cores of the CPU (Brand C1)" in text
    assert "On how many CPU cores a step would take as long as on the accelerator" in text
    assert "measured on 1, 2" in text
    assert (
        "Measured on GPU (Brand G1), 2 host threads and CPU (Brand C1), 2 threads ; today" in text
    )  # each device once
    assert "GPU worth more than 2 cores at 4 linear layers" in text[: text.index("A title #")]
    assert "On how many CPU cores" not in Page(page(rows, figure)).text
