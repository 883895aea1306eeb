"""The report of made-up runs: content, wording, and escaping of users' text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

from crossover.config.statuses import FLAGS
from crossover.home import ROOT
from crossover.report.page_data import is_analysed
from crossover.report.report import Run, picture_of, trust_of, write_report
from crossover.report.templates import environment_of, first_answer
from crossover.report.thresholds import thresholds_of
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import records
from crossover.tables.reference_files import Facts, Reference
from crossover.tables.registry import CAVEATS as CROSSOVER_CAVEATS
from crossover.tables.run_tables import REPORT_FILES, TABLES
from crossover.topics.answers import read_answers
from crossover.topics.bottlenecks.answers import Bottleneck
from crossover.topics.caveats import CAVEAT_WORDS, CAVEATS
from crossover.topics.claims.findings import REASONS
from crossover.topics.comparisons import Ratio
from report_pages import CONFIG, INVOCATION, TEMPLATES, Page, study, tables_of, trial_command, write_page

Row = Callable[..., dict[str, Any]]
GOLDEN = Path(__file__).parent / "golden"
FAR = Facts("far", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.11.0", "3.12.3", None, "Linux", "abc", None)
HOSTILE = "<script>alert(1)</script>|*x*\n"


@pytest.fixture(scope="module")
def rows(row: Row) -> pd.DataFrame:
    """A study over width and one with a single, flagged cell.

    Over width, the CPU takes 1 us per neuron; the GPU takes 2 ms, and runs out of memory at the largest width.
    """
    widths = [
        row(
            study="widths",
            size=size,
            parameters=7 * size,
            size_name="neurons",
            device=device,
            trial=trial,
            step_time_s=(size * 1e-6 if device == "cpu" else 2e-3) * 1.01 ** (trial - 2),
            peak_allocated_bytes=1000 * size if device == "cuda" else None,
            device_memory_bytes=8_000_000 if device == "cuda" else None,
            **({"split_step_s": 2e-3, "held_s": 2e-3, "replayed_s": 2e-4 * 1.01**trial} if device == "cuda" else {}),
            command=trial_command(trial, device, size=size),
            torch_version="2.13.0",
            spent_s=json.dumps({"import": 1.2, "context": 0.1, "build": 0.4 if device == "cpu" else 2.9}),
            first_step_s=0.1 * 1.01**trial,
        )
        for size in (100, 1000, 4000, 8000)
        for device in ("cpu", "cuda")
        for trial in (1, 2, 3)
    ]
    for trial in widths[-3:]:
        trial |= {"status": "oom", "reason": "8 GB wanted", "step_time_s": None, "peak_allocated_bytes": None}
        trial |= dict.fromkeys(("split_step_s", "held_s", "replayed_s"))
    alone = row(study="alone", device="cuda", size=2, flag_names=["drift"], torch_version="2.13.0")
    return pd.DataFrame([*widths, alone])


@pytest.fixture(scope="module")
def page(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return write_page(rows, tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize(("sizes", "basis"), [(4, "one trial per cell"), (11, "one trial at 4 of 11 sizes")])
def test_a_first_answer_states_its_number_of_sizes(rows: pd.DataFrame, sizes: int, basis: str) -> None:
    first = rows[(rows["study"] == "widths") & (rows["trial"] == 1)]
    answers = tables_of(first, {"widths": study()}).answers
    lines = first_answer(answers, measured=4, sizes=sizes).splitlines()
    assert lines
    assert all(line.startswith(f"First answer, preliminary ({basis}): widths: ") for line in lines)


def visible(html: str) -> str:
    """The page from its head to the provenance, without pictures and captions."""
    body = html[html.index("<header>") : html.index('<section class="provenance"')]
    return re.sub(r"<figure>.*?</figure>", "FIGURE", body, flags=re.DOTALL)


def golden(name: str, text: str) -> str:
    """The accepted text; to accept a new one, delete its file, run the test and review the difference."""
    path = GOLDEN / name
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} was missing and is written now: read it")
    return path.read_text(encoding="utf-8")


def test_the_page_is_the_accepted_one(page: Page) -> None:
    text = visible(page.path.read_text())
    assert text == golden("report.html", text)


def test_the_summary_is_the_accepted_one(page: Page) -> None:
    text = re.sub(r"\d{4}-.* UTC", "TIME", (page.folder / "summary.md").read_text())
    assert text == golden("summary.md", text)


@pytest.mark.parametrize("trials", [1, 2])
def test_only_a_chart_of_several_trials_has_intervals(row: Row, tmp_path: Path, trials: int) -> None:
    made = [row(device=device, trial=trial) for device in ("cpu", "cuda") for trial in range(1, trials + 1)]
    html = write_page(pd.DataFrame(made), tmp_path).path.read_text()
    assert ("Each interval is 95 % on its own" in html) == (trials > 1)


def test_a_number_of_a_claim_stands_beside_the_quantity_that_it_is(row: Row, tmp_path: Path) -> None:
    """The words of a claim may be about another quantity, such as a mean; so may the published value of a row."""
    trials = [
        row(device="cuda", trial=trial, latency_p50_s=1e-3 * 1.01**trial, latency_p99_s=2e-3)
        | {"latencies_s": [1e-3] * 4, "latencies_transfer_s": [1.1e-3 * 1.01**trial] * 4}
        | {"latencies_cold_s": [5e-3 * 1.01**trial, 1e-3, 1e-3]}
        for trial in range(1, 5)
    ]
    pairs = {
        "the mean latency is longer": ("latencies_s", "latencies_cold_s"),
        "longer with transfers": ("latencies_s", "latencies_transfer_s"),
        "single samples vary": ("latency_p50_s", "latency_p99_s"),
    }
    claims = [
        {"statement": words, "source": "A", "ratio_below": {"of": {"metric": of}, "over": {"metric": over}, "limit": 1}}
        for words, (of, over) in reversed(pairs.items())
    ]
    studies = {"disc_depth": study(claims=claims, figures=["latency"])}
    write_report(Run(tables_of(pd.DataFrame(trials), studies), studies, CONFIG), tmp_path, TEMPLATES)
    summary, terminal, page = ((tmp_path / name).read_text() for name in ("summary.md", "summary.txt", "report.html"))
    quantities = (
        "median of later steps over first step, without warm-up",
        "mean latency (host clock, synchronised) over mean latency (transfer in the loop)",
        "median latency over 99th percentile of the latency",
    )
    for words, quantity in zip(pairs, quantities, strict=True):
        assert re.search(rf"{words} .*?measured [^:]*: {re.escape(quantity)}\\\]", summary), words
        assert quantity in page
    assert f"the median on the GPU (95 % CI 5.02 to 5.23); tested: below 1, {quantities[0]}: ✓ reproduced" in terminal


def test_the_page_says_which_intervals_are_corrected(row: Row) -> None:
    """An interval of table `ratios` is Welch's, 95 % on its own; the sentence's is corrected for `corrected_for`.

    Without a significant difference, Holm's procedure corrects for all comparisons: the ratio, and the claim.
    """
    claim = {"statement": "as fast", "source": "A"}
    claim["ratio_between"] = {"metric": "step_time_s", "of": {"device": "cpu"}, "over": {"device": "cuda"}}
    claim["ratio_between"] |= {"range": [0.8, 1.25]}
    trials = [
        row(device=device, size=2, trial=trial, step_time_s=1e-3 * slower * 1.2**trial)
        for device, slower in (("cpu", 1.05), ("cuda", 1))
        for trial in (1, 2, 3)
    ]
    studies = {"disc_depth": study(figures=["latency"], claims=[claim])}
    tables = tables_of(pd.DataFrame(trials), studies)
    (ratio,) = records(tables.ratios)
    (answer,) = [one for one in read_answers(tables.answers) if isinstance(one, Ratio)]
    assert answer.corrected_for == 2
    error = math.log(1.2) * math.sqrt(2 / 3)
    assert math.log(ratio["ratio_high"] / ratio["ratio"]) == pytest.approx(2.776 * error, rel=1e-3)
    assert answer.ratio_high == pytest.approx(ratio["ratio"] * math.exp(3.495 * error), rel=1e-3)
    picture = picture_of("disc_depth", "speedups", 'width="60pt" height="21pt"', {"disc_depth": "2 comparisons"})
    assert picture["caption"].endswith("Each interval is 95 % on its own; sentences are corrected for 2 comparisons.")
    assert "on its own" in TABLES["ratios"]["ratio_low"].doc


def whys(trials: list[dict[str, Any]]) -> list[Bottleneck]:
    """The answers on why a step takes its time, the main one first."""
    answers = read_answers(tables_of(pd.DataFrame(trials)).answers)
    return sorted((one for one in answers if isinstance(one, Bottleneck)), key=lambda one: not one.main)


def split(row: Row, trial: int, size: int = 2, **values: Any) -> dict[str, Any]:
    """A trial of 1 ms per step whose time was split into parts."""
    times_s = dict.fromkeys(("step_time_s", "split_step_s", "held_s"), 0.001)
    return row(**{"trial": trial, "size": size, **times_s, **values})


def test_the_cause_and_its_remedy_are_told_for_the_accelerator_first(row: Row) -> None:
    """A CUDA graph takes a tenth of a GPU's step. Of a CPU's step, 90 % do not grow with the batch."""
    trials = [
        split(row, trial, size, device=device, protocol=protocol, **{name: time_s * 1.01 ** (trial - 2)})
        for protocol in ("as_published", "resident")
        for device, name, time_s in (("cpu", "larger_s", 1.3e-3), ("cuda", "replayed_s", 1e-4))
        for size in (2, 3)
        for trial in (1, 2, 3)
    ]
    gpu, cpu = (next(one for one in whys(trials) if one.device == device) for device in ("GPU", "CPU"))
    assert (gpu.main, cpu.main) == (True, False)
    assert gpu.text() == (
        "resident: launching kernels is 90 % of a GPU step at 2 linear layers and the largest part at every size "
        "measured; one CUDA graph is 10.0x faster (95 % CI 9.76 to 10.3)"
    )
    assert cpu.sentence() == (
        "calling operators is 90 % of a CPU step at 2 linear layers and the largest part at every size measured; "
        "4 times the batch is 3.08x faster per sample (95 % CI 3.00 to 3.15)"
    )
    unsure = replace(gpu, remedy="one thread", gain=1.1, gain_low=0.9, gain_high=1.3)
    assert unsure.sentence().endswith("; no significant gain from one thread (95 % CI 0.900 to 1.30)")
    unknown = replace(unsure, gain_low=1e-12, gain_high=1e13)
    assert unknown.sentence().endswith("; no significant gain from one thread in so few trials")


@pytest.mark.parametrize(("loading_s", "told"), [(1e-7, "; 4 times the"), (1e-4, "; with batches prepared ahead, 4")])
def test_a_gain_is_that_on_prepared_batches_only_where_preparing_them_takes_time(
    row: Row, loading_s: float, told: str
) -> None:
    (why,) = whys([split(row, 1, held_s=1e-3 - loading_s, loading_s=loading_s, larger_s=1.3e-3)])
    assert told in why.sentence()


@pytest.mark.parametrize("gain", [40.0, 200.0])
@pytest.mark.parametrize("disturbed", [0, 1, 3])
def test_a_cause_under_load_has_a_caveat_or_is_left_out(row: Row, disturbed: int, gain: float) -> None:
    """The flags of the trials that tried a remedy count, also if they are too few for a flag of the cell."""
    trials = [
        split(row, trial, size, one_thread_s=1e-3 / gain)
        | {"flag_names": ["steal"] if trial <= disturbed and size == 2 else []}
        for size in (2, 3, 4, 5, 6)
        for trial in (1, 2, 3)
    ]
    tables = tables_of(pd.DataFrame(trials))
    (cell, *_) = records(tables.cells)
    assert cell["gain"] == pytest.approx(gain)
    assert cell["remedy_flags"] == (["steal"] if disturbed else [])
    assert is_analysed(tables.cells).tolist() == [not (disturbed and gain > 100), True, True, True, True]
    text = whys(trials)[0].text()
    if disturbed and gain > 100:
        assert text.startswith(
            "load on this machine hides the cause of the time of a CPU step (CPU time taken by other"
        )
    else:
        assert f"one thread is {gain:.{1 if gain < 100 else 0}f}x faster" in text
        assert ("CPU time taken by other hosts" in text) is (disturbed > 0)


@pytest.mark.parametrize(
    ("work", "text"),
    [
        # The work of the device in ms at each size, of a step of 1 ms, and which the roofs explain at none of them.
        ((0.8, 0.8, 0.8), "2 linear layers is unexplained and the largest part up to 4 linear layers; {}"),
        ((0.8, 0.8, 0.2), "2 linear layers is unexplained and the largest part up to 3 linear layers; {}; {}"),
        ((0.8,), "2 linear layers is unexplained; {}"),
        ((0.4, 0.8), "; at the largest size, no cause was found"),
        ((0.4, 0.8, 0.4), "; at the largest size, the largest part is again calling operators"),
    ],
)
def test_what_is_unexplained_is_no_cause(row: Row, work: tuple[float, ...], text: str) -> None:
    parts = (
        "the largest explained part is calling operators, 20 %",
        "at the largest size, the largest part is calling",
    )
    trials = [
        split(row, trial, size, larger_s=1e-3 * (1 + 3 * part), products_s=1e-4, others_s=0.0, flops_per_step=3)
        for size, part in enumerate(work, 2)
        for trial in (1, 2, 3)
    ]
    (why,) = whys(trials)
    if work[0] > 0.5:
        assert why.sentence().startswith(f"the cause was not found: 80 % of a CPU step at {text.format(*parts)}")
        assert not why.remedy
    else:
        start = "calling operators is 60 % of a CPU step at 2 linear layers; 4 times"
        assert why.sentence().startswith(start)
        assert why.sentence().endswith(text)


def test_a_cause_that_is_unknown_without_counted_operations_says_so(row: Row) -> None:
    (why,) = whys([split(row, 1, 2, larger_s=3.4e-3, products_s=1e-4, others_s=0.0) | {"flops_per_step": None}])
    assert why.sentence().startswith(
        "the cause was not found: 80 % of a CPU step at 2 linear layers is unexplained, since torch cannot count its "
    )


def test_a_run_without_a_gpu_names_the_commands_for_a_machine_with_one_once(rows: pd.DataFrame, tmp_path: Path) -> None:
    note = "this machine has a GPU, but its driver does not answer (Unknown Error): restart the machine"
    page = write_page(rows[rows["device"] == "cpu"], tmp_path / "my results", note=note)
    given = "snakemake --cores 1 --config results=gpu"
    texts = {name: (page.folder / name).read_text() for name in ("report.html", "summary.md", "summary.txt")}
    terminal = texts["summary.txt"]
    assert f" and run there:\n  {given}\n" in terminal
    assert f"\n  python {ROOT}/scripts/report_rows.py 'no_gpu={page.folder}' with_gpu=gpu --output both\n" in (
        terminal.replace("python scripts/", f"python {ROOT}/scripts/")
    )
    assert f" and run there:** `{given}`\n" in texts["summary.md"]
    assert f"and run there: <code>{given}</code>" in texts["report.html"]
    assert terminal.startswith(f"Note: {note}\n")
    assert f"**Note: {note}**" in texts["summary.md"]
    assert note in texts["report.html"]
    assert {name: text.count("No GPU measured here") for name, text in texts.items()} == dict.fromkeys(texts, 1)


def test_studies_of_cpu_sides_alone_are_not_sent_to_a_machine_with_a_gpu(rows: pd.DataFrame, tmp_path: Path) -> None:
    page = write_page(rows[rows["device"] == "cpu"], tmp_path, spec={"devices": ("cpu", "cpu-2x1")})
    texts = [(page.folder / name).read_text() for name in ("report.html", "summary.md", "summary.txt")]
    assert "a machine that has a GPU" not in " ".join(texts)


def test_a_run_may_have_a_heading_of_its_own(rows: pd.DataFrame, tmp_path: Path) -> None:
    page = write_page(rows, tmp_path, config={**CONFIG, "title": "Rules & all"})
    assert page.path.read_text().count("Rules &amp; all</h1>") == 1
    assert (page.folder / "summary.md").read_text().startswith("## Rules \\& all\n")


def test_rows_of_the_printed_table_of_cells_differ_in_more_than_their_times(row: Row, tmp_path: Path) -> None:
    settings = [("fp16", "eager"), ("int8", "eager"), ("fp16", "compile")]
    trials = [row(study="varied", variant=variant, execution=execution) for variant, execution in settings]
    page = write_page(pd.DataFrame([row(study="one_cell"), *trials]), tmp_path)
    printed = page.path.read_text().partition("<caption>All cells.</caption>")[2]
    for variant, execution in settings:
        assert printed.count(f"<td>fp32</td><td>{variant}</td><td>{execution}</td>") == 1


def test_the_tables_of_cells_have_the_names_of_two_sizes(row: Row, tmp_path: Path) -> None:
    text = write_page(pd.DataFrame([row(size_name="m", batch_name="k")]), tmp_path).path.read_text()
    printed = text.partition("<caption>All cells.</caption>")[2]
    for key, title in (("size", "m"), ("batch_size", "k")):
        assert f'<th scope="col">{title}</th>' in printed
        assert f'"key":"{key}","title":"{title}"' in text


def test_the_files_to_copy_to_a_machine_with_a_gpu_are_named() -> None:
    words: Any = environment_of(TEMPLATES).get_template("words.j2").module
    there = {"files": ["/nets/net.py"], "at_their_path": ["/data/rows.csv"], "uses_checkout": True}
    assert words.no_gpu({"folder": "/here", "on_a_gpu": there}) == (
        "No GPU measured here. Copy the folder /here, with /nets/net.py put into it, to a machine that has a GPU and "
        "Crossover (also /data/rows.csv, to the same path), and run there (CROSSOVER stands for the path of "
        "Crossover's folder there):"
    )


def test_a_model_that_does_not_use_its_size_has_no_threshold(rows: pd.DataFrame) -> None:
    work = [[1.0]] * len(rows)
    rows = rows.assign(workload="model", parameters=5, flops_per_step=3)
    rows = rows.assign(products_bytes_by_working_set=work, others_bytes_by_working_set=work)
    thresholds = thresholds_of(tables_of(rows), "today")["thresholds"]
    assert [entry["study"] for entry in thresholds] == ["alone"]  # which has one size


def test_a_partial_report_of_another_host_says_so(rows: pd.DataFrame, tmp_path: Path) -> None:
    """It does not report results that are still to come as missing."""
    progress = {"trial": (25, 40), "training": (0, 1)}
    page = write_page(rows[rows["device"] == "cpu"], tmp_path, host="login", progress=progress)
    sentence = "25 of 40 trials and 0 of 1 training have finished."
    terminal, summary, html = ((tmp_path / name).read_text() for name in ("summary.txt", "summary.md", "report.html"))
    assert terminal.startswith(f"Partial: {sentence}")
    assert f"This report is partial: {sentence}" in html
    facts = json.loads((page.folder / "provenance.json").read_text())
    assert facts["progress"] == {"trial": [25, 40], "training": [0, 1]}
    assert "No GPU measured here" not in terminal + summary + html
    assert "Measured on another host: here." in terminal.splitlines()
    assert "Measured on another host: <bdi>here</bdi>." in html
    assert re.search(r"Measured on .*Brand C1.* of here; threads 2", summary)


@pytest.mark.parametrize(
    ("last", "told"), [("2026-11-27", "2026-11-27"), ("2026-11-28", "2026-11-27 to 2026-11-28"), (None, "2026-11-27")]
)
def test_the_chart_has_the_threads_and_dates_of_its_measurements(
    rows: pd.DataFrame, tmp_path: Path, last: str | None, told: str
) -> None:
    cpu = rows[rows["device"] == "cpu"]
    starts = ["2026-11-27T23:59:58.500+00:00"] * (len(cpu) - 1) + [last and f"{last}T00:00:04.125+00:00"]
    page = write_page(cpu.assign(threads=1, started_at=starts), tmp_path)
    assert f"</bdi>, 1 thread; {told}. Each interval" in page.path.read_text()


def test_every_caveat_and_reason_has_a_wording() -> None:
    assert set(FLAGS) <= set(CAVEATS) <= {*CAVEAT_WORDS, *CROSSOVER_CAVEATS, "no_interval"}
    words: Any = environment_of(TEMPLATES).get_template("words.j2").module
    assert set(words.REASONS) == set(REASONS)


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "1 main statement that compares, at most 0.05 is"), (2, "2 main statements that compare, at")],
)
def test_a_single_statement_is_told_in_the_singular(page: Page, count: int, words: str) -> None:
    trust = trust_of(page.tables.cells, [], page.tables.claims) | {"statements": count, "false_at_most": 0.05}
    assert f"; of {words}" in environment_of(TEMPLATES).get_template("words.j2").module.trust(trust)  # type: ignore[attr-defined]


@pytest.mark.parametrize("most", [1, 3])
def test_a_single_trial_is_said_once_for_all_cells_or_with_each_answer(
    rows: pd.DataFrame, tmp_path: Path, most: int
) -> None:
    """All cells but one have a single trial, and so have most answers."""
    timed = rows[(rows["study"] == "widths") & (rows["status"] == "ok")]
    kept = (timed["trial"] == 1) | ((timed["size"] == 100) & (timed["device"] == "cpu") & (timed["trial"] <= most))
    text = (write_page(timed[kept], tmp_path).folder / "summary.txt").read_text()
    assert ("single trial)" in text) is (most > 1)
    assert ("Single trial per cell" in text) is (most == 1)


def test_one_cell_is_told_in_the_singular(row: Row, tmp_path: Path) -> None:
    html = write_page(pd.DataFrame([row()]), tmp_path).path.read_text()
    assert "<summary>Data: 1 cell, " in html
    assert "1 cells" not in visible(html)


def test_many_answers_are_summarised(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Five batch sizes, at one of which the GPU takes 1.8 times as long; paybacks are counted separately.

    Its start-up is 2.5 s longer, 0.125 ms for each step of the run, and at 4,000 neurons it gains 2 or 0.4 ms per step.
    """
    timed = rows[(rows["study"] == "widths") & (rows["size"] < 8000)]
    slower = timed["step_time_s"].where(timed["device"] == "cpu", 1.8 * timed["step_time_s"])
    lines = [timed.assign(batch_size=batch) for batch in (1, 2, 4, 8)] + [timed.assign(step_time_s=slower)]
    studies = {"widths": study(steps_per_run=20_000)}
    write_report(Run(tables_of(pd.concat(lines), studies), studies), tmp_path, TEMPLATES)
    of_steps = "GPU faster above 2,000 to 3,600 neurons, by series"
    of_runs = "in a run of 20,000 steps, start-up included: GPU faster above 2,140 to 3,730 neurons, by series"
    paid_back = "GPU ahead after 1,250 to 6,250 steps at 4,000 neurons"
    html, summary = ((tmp_path / name).read_text() for name in ("report.html", "summary.md"))
    for words in (of_steps, of_runs, paid_back):
        assert f"<em>5 of 5 series:</em> <strong>{escape(words)}</strong>" in html
    assert "<br>".join(f"5 of 5 series: {words}" for words in (of_steps, of_runs, paid_back)) in summary


def test_text_of_users_is_escaped_on_the_page_and_in_markdown(rows: pd.DataFrame, tmp_path: Path) -> None:
    changed = rows.assign(device_name=HOSTILE, hostname=HOSTILE, size_name=HOSTILE, command=HOSTILE)
    page = write_page(changed, tmp_path, HOSTILE)
    html = page.path.read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    markdown = (page.folder / "summary.md").read_text()
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {4}
    assert not re.search(r"(?<!\\)<script", markdown)


def test_beside_the_only_cpu_a_reference_is_compared_but_not_ranked(rows: pd.DataFrame, tmp_path: Path) -> None:
    """This CPU takes 4 us per neuron, the reference's CPU 1 us, and its GPU 0.4 ms, out of memory at 8,000."""
    widths = rows[rows["study"] == "widths"].assign(model_key="key")
    faster = widths["device"].map({"cpu": 1.0, "cuda": 0.2})
    there = widths.assign(machine="far", step_time_s=faster * widths["step_time_s"]).reindex(columns=list(COLUMNS))
    here = widths[widths["device"] == "cpu"]
    page = write_page(
        here.assign(step_time_s=4 * here["step_time_s"]),
        tmp_path,
        references=[Reference(replace(FAR, code_version="abc-dirty"), there)],
    )
    html = (page.folder / "report.html").read_text()
    words = "measured elsewhere on 2026-11-23 (torch 2.11.0, code with uncommitted changes); "
    words += "work of its host takes 4.00 times as long on this CPU"
    assert words in unescape(html)
    assert "<code>abc-dirty</code>, with uncommitted changes" in html
    assert words in unescape((page.folder / "summary.md").read_text()).replace("\\", "")
    table = html[html.index("Time of a step on each device of each machine") :]
    assert re.findall(r"<th scope=\"col\"><bdi>(.*?)</bdi>", table[: table.index("</thead>")]) == [
        "this CPU",
        "CPU of far",
        "GPU of far",
    ]
    assert "and their ratio is that on its own host; " in unescape(table[: table.index("</caption>")])
    for name in ("report.html", "summary.md", "summary.txt"):
        text = (page.folder / name).read_text()
        assert "Fastest" not in text
        assert "An H200 would be 10.0x as fast as this CPU at 4,000 neurons" in text
    claims = (page.folder / "summary.md").read_text().partition("from 100 on")
    assert claims[0].endswith("– no data (no GPU was measured): ")
    assert claims[2].partition("<br>")[2].startswith("on an H200 measured elsewhere (2026-11-23): ")


def test_a_study_without_a_crossover_says_its_speed_up(row: Row, tmp_path: Path) -> None:
    """The GPU takes 4 ms and the CPU 12 ms; the study's own question is another one."""
    rows = [
        row(
            study="one",
            device=device,
            trial=trial,
            step_time_s=time_s * 1.01**trial,
            latencies_s=[time_s] * 9,
            latencies_cold_s=[10 * time_s] + [time_s] * 9,
        )
        for device, time_s in (("cpu", 12e-3), ("cuda", 4e-3))
        for trial in range(1, 9)
    ]
    page = write_page(pd.DataFrame(rows), tmp_path, spec={"figures": ["latency"]})
    for name in ("report.html", "summary.md", "summary.txt"):
        text = unescape((page.folder / name).read_text()).replace("\xa0", " ")
        first_screen = text.partition('id="chart"')[0]
        assert first_screen.count("GPU 3.00x faster than CPU (95 % CI 2.9") == 1, name


def test_a_study_without_a_crossover_or_a_gpu_says_the_speed_up_elsewhere(row: Row, tmp_path: Path) -> None:
    """A CPU of 12 ms here and 6 ms there, whose GPU takes 2 ms, nearly all on the host."""
    there, here = (
        pd.DataFrame(
            [
                row(
                    study="one",
                    device=device,
                    trial=trial,
                    step_time_s=factor * time_s * 1.01**trial,
                    latencies_s=[time_s] * 9,
                    latencies_cold_s=[10 * time_s] + [time_s] * 9,
                    model_key="key",
                    device_busy_s=1e-9,
                )
                for device, time_s in (("cpu", 6e-3), ("cuda", 2e-3))[:devices]
                for trial in range(1, 9)
            ]
        )
        for factor, devices in ((1, 2), (2, 1))
    )
    reference = Reference(FAR, there.assign(machine="far").reindex(columns=list(COLUMNS)))
    page = write_page(here, tmp_path, references=[reference], spec={"figures": ["latency"]})
    for name in ("report.html", "summary.md", "summary.txt"):
        text = unescape((page.folder / name).read_text()).partition('id="chart"')[0]
        assert text.count("An H200 would be 3.00x as fast as this CPU") == 1, name


def test_a_claim_names_its_machine_and_the_missing_gpu_once(row: Row, tmp_path: Path) -> None:
    """Of two machines, only a has a GPU, with 4 ms for 12 ms of the CPU."""
    rows = [
        row(study="one", machine=machine, device=device, trial=trial, step_time_s=time_s * 1.01**trial)
        for machine, device, time_s in (("a", "cpu", 12e-3), ("a", "cuda", 4e-3), ("b", "cpu", 12e-3))
        for trial in range(1, 9)
    ]
    sides = {"fast": {"device": "cuda"}, "slow": {"device": "cpu"}}
    speedup = {"statement": "it is 3x", "speedup_between": {**sides, "range": [2, 4]}}
    crossing = {"statement": "it starts", "crossover_between": {"range": [1, 9]}}
    published = {"statement": "it pays off", "source": "Somebody (2019)"}
    studies = {"one": study(claims=[speedup, crossing], published=published)}
    write_report(Run(tables_of(pd.DataFrame(rows), studies), studies), tmp_path, TEMPLATES)
    text = unescape((tmp_path / "summary.md").read_text()).replace("\\", "")
    assert text.count("on a]") == 2  # once for each of the claims
    assert "on a, on a" not in text
    assert text.count("no data (no GPU was measured)") == 1
    assert "(not measured)" not in text


def test_the_page_has_pictures_only_of_what_its_chart_does_not_show(row: Row, tmp_path: Path) -> None:
    trials = pd.DataFrame([row(size=size, peak_rss_bytes=10**9, base_rss_bytes=10**8) for size in (2, 4)])
    html = write_page(trials, tmp_path, spec={"figures": ["times", "memory"]}).path.read_text()
    (picture,) = re.findall(r'<img src="data:image/svg\+xml,[^"]*" width="\d+" height="\d+"[^>]* alt="([^"]*)"', html)
    assert picture.startswith("Peak memory of a step")
    assert not (tmp_path / "figures").exists()


def test_a_run_without_rows_has_a_report(tmp_path: Path) -> None:
    studies = {"widths": study()}
    write_report(Run(tables_of(pd.DataFrame(columns=list(COLUMNS)), studies), studies), tmp_path, TEMPLATES)
    html = (tmp_path / "report.html").read_text()
    assert "No trial has a time, so there is no answer yet" in html
    assert "Not measured here" in html
    assert {path.name for path in tmp_path.iterdir()} == set(REPORT_FILES.values())


def test_a_report_on_two_machines_compares_them(rows: pd.DataFrame, tmp_path: Path) -> None:
    slow = rows.assign(machine="laptop", step_time_s=2 * rows["step_time_s"], torch_version="2.12.0")
    html = write_page(pd.concat([rows.assign(machine="h200"), slow]), tmp_path).path.read_text()
    assert "This report holds 2 machines: " in html
    assert "2.13.0 on h200, 2.12.0 on laptop" in html
    beside = html[html.index("Time of a step on two machines") :]
    assert re.search(r"<bdi>laptop</bdi></td><td><bdi>h200</bdi></td>.*<td>0\.500 \(", beside)
    assert re.search(r"over trials, on its own; sentences are corrected for \d+ comparisons.</caption>", beside)


def test_each_of_two_machines_without_a_gpu_has_its_line(rows: pd.DataFrame, tmp_path: Path) -> None:
    timed = rows[(rows["study"] == "widths") & (rows["device"] == "cpu")]
    slow = timed.assign(step_time_s=2 * timed["step_time_s"])
    merged = [timed.assign(machine="a"), slow.assign(machine="b")]
    html = write_page(pd.concat(merged), tmp_path).path.read_text()
    texts = [html, *((tmp_path / name).read_text() for name in ("summary.txt", "summary.md"))]
    for machine, first, last in (("a", "100 µs", "8.00 ms"), ("b", "200 µs", "16.0 ms")):
        line = rf"{machine}: CPU takes {first} per step at 100 neurons \(.*?\), {last} at 8,000 neurons"
        assert [len(re.findall(line, text)) for text in texts] == [1, 1, 1]
    assert not any(re.search(r"first of \d", text) for text in texts)


def test_a_busy_machine_is_told_of_all_answers_only_if_it_disturbed_all(rows: pd.DataFrame, tmp_path: Path) -> None:
    timed = rows[(rows["study"] == "widths") & (rows["device"] == "cpu")]
    flags = [["busy_host"] if size == 100 else [] for size in timed["size"]]
    busy = [["busy_host"]] * len(timed)
    series = [timed.assign(batch_size=2, flag_names=flags), timed.assign(batch_size=4, flag_names=busy)]
    studies = {"widths": study()}
    write_report(Run(tables_of(pd.concat(series), studies), studies), tmp_path, TEMPLATES)
    summary = (tmp_path / "summary.md").read_text()
    assert re.search(r"batch 2: CPU takes 100 µs per step at 100 neurons \(.*; busy machine\), 8.00 ms", summary)
    assert len(re.findall("batch 4:  ?On a busy machine: CPU takes", summary)) == 2
    assert summary.count("On a busy machine") == 2


@pytest.mark.parametrize("disturbed", [(2, 3), (2,)])
def test_the_cause_does_not_repeat_that_the_machine_was_busy(
    row: Row, tmp_path: Path, disturbed: tuple[int, ...]
) -> None:
    """The cause is that of a busy cell; the answer begins with its caveat only if all cells were disturbed."""
    trials = [
        split(row, 1, size, study="widths", larger_s=1.3e-3) | {"flag_names": ["busy_host"] * (size in disturbed)}
        for size in (2, 3)
    ]
    studies = {"widths": study()}
    write_report(Run(tables_of(pd.DataFrame(trials), studies), studies), tmp_path, TEMPLATES)
    answer, why, *_ = (tmp_path / "summary.txt").read_text().splitlines()
    assert "calling operators is" in why
    assert ("On a busy machine: " in answer) is (len(disturbed) == 2)
    assert ("busy machine" in why) is (len(disturbed) == 1)


@pytest.mark.parametrize(
    ("flagged", "sentence"),
    [
        (8, "8 of 8 cells remain disturbed: 8 with other programs on their cores"),
        (1, "1 of 8 cells remains disturbed: 1 with other programs on their cores"),
    ],
)
def test_page_summary_and_terminal_have_the_number_of_disturbed_cells(
    rows: pd.DataFrame, page: Page, tmp_path: Path, flagged: int, sentence: str
) -> None:
    """Answers do not repeat a flag that most cells have."""
    timed = rows[rows["status"] == "ok"]
    cells = timed[["study", "device", "size"]].apply(tuple, axis=1)
    chosen = cells.isin(cells.unique()[:flagged])
    disturbed = write_page(timed.assign(flag_names=[["busy_host"] if flag else [] for flag in chosen]), tmp_path)
    confidence, undisturbed = (
        re.findall(r"<summary>(Confidence: .*)</summary>", made.path.read_text())[0] for made in (disturbed, page)
    )
    assert f"; {sentence}" in confidence
    assert f"Caution: {sentence}." in (tmp_path / "summary.txt").read_text().splitlines()
    summary = (tmp_path / "summary.md").read_text()
    assert f"- Caution: {sentence}." in summary.splitlines()
    assert summary.count("with other programs on their cores") == 1
    others = [(page.folder / name).read_text() for name in ("summary.txt", "summary.md")]
    assert "disturbed" not in "".join([undisturbed, *others])


def test_a_sentence_has_one_caveat_and_the_page_and_the_table_have_all(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Two of the four widths have times that drift; the largest width has no result on the GPU."""
    timed = rows[rows["study"] == "widths"]
    flags = [["drift"] if size in (1000, 4000) else [] for size in timed["size"]]
    page = write_page(timed.assign(flag_names=flags), tmp_path)
    html = page.path.read_text()
    sentence = "significantly slower at 1,000, faster at 4,000; some of its cells have no result)"
    for name in ("summary.md", "summary.txt"):
        text = (tmp_path / name).read_text()
        assert sentence in text
        assert "drifting times" not in text
    (answer,) = (answer for answer in records(page.tables.answers) if answer["kind"] == "crossover")
    assert answer["caveats"] == ["lost_cells", "drift"]
    further = "GPU faster above 2,000 neurons</bdi>”: drifting times."
    assert further in html[html.index('id="more"') :]


def simulated(rows: pd.DataFrame, trials: int, slower: float, seed: int) -> pd.DataFrame:
    """Trials of four widths with a spread of 10 %, of which 7 % drift, on a host that takes `slower` times as long in
    half of the trials."""
    generator = np.random.default_rng(seed)
    timed = rows[(rows["study"] == "widths") & (rows["trial"] == 2) & (rows["status"] == "ok")]
    runs = pd.concat([timed.assign(trial=trial) for trial in range(1, trials + 1)])
    states = generator.integers(0, 2, len(runs))
    times_s = runs["step_time_s"] * slower**states * np.exp(generator.normal(0, 0.1, len(runs)))
    return runs.assign(
        step_time_s=times_s, flag_names=[["drift"] * bool(drifts) for drifts in generator.random(len(runs)) < 0.07]
    )


def test_a_quiet_run_has_no_caveat_and_one_with_two_states_has(rows: pd.DataFrame) -> None:
    def caveats(slower: float, seed: int) -> set[str]:
        tables = tables_of(simulated(rows, 16, slower, seed), {"widths": study()})
        return {caveat for caveats in tables.answers["caveats"] for caveat in caveats}

    assert sum(not caveats(1.0, seed).isdisjoint(FLAGS) for seed in range(8)) <= 1
    assert all("trials_differ" in caveats(2.0, seed) for seed in range(3))


def test_trainings_are_summarised_in_a_sentence_and_a_table(row: Row, tmp_path: Path) -> None:
    trial = row()
    rows = np.arange(1000) % 2
    trained = [
        trial | {"device": device, "seed": seed, "labels": rows, "predictions": rows, "generated_data": False}
        for device in ("cpu", "cuda")
        for seed in (1, 2)
    ]
    studies = {"disc_depth": study(figures=["utilisation"])}
    write_report(Run(tables_of(pd.DataFrame([trial]), studies, trainings=trained), studies), tmp_path, TEMPLATES)
    html = (tmp_path / "report.html").read_text()
    assert "1.00000" in html
    assert "+0.00000 (-0.00392 to +0.00392)" in html
    sentence = (
        "A GPU trains an equivalent model: accuracy within ±0.01 of the CPU's in fp32; tested on 1,000 rows of disc"
    )
    for name in ("report.html", "summary.md", "summary.txt"):
        assert sentence in unescape((tmp_path / name).read_text())


def test_provenance_has_commands_config_sources_and_machines(page: Page) -> None:
    facts = json.loads((page.folder / "provenance.json").read_text())
    assert facts["run"] == {
        "command": "snakemake --cores 1",
        "folder": INVOCATION.folder,
        "in_checkout": True,
        "on_a_gpu": {
            "command": "snakemake --cores 1 --config results=gpu",
            "uses_checkout": False,
            "files": [],
            "at_their_path": [],
        },
        "again": "snakemake --cores 1 --config results=again",
    }
    assert facts["rerun"] == [f"git checkout {'d' * 40}", "pip install -r requirements.txt", "snakemake --cores 1"]
    assert facts["config"] == CONFIG
    assert facts["example"] == trial_command(1, "cpu", size=100)
    assert facts["sources"] == ["Somebody (2019)"]
    gpu, cpu = facts["machines"]
    assert (gpu["device"], gpu["rows"], cpu["device"], cpu["rows"]) == ("GPU (Brand G1)", 13, "CPU (Brand C1)", 12)
    assert (gpu["facts"]["torch_version"], gpu["facts"]["device_memory_bytes"]) == ("2.13.0", "8.00 MB")
