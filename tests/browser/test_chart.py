"""The page's chart in a browser: slider, curves, readout, state in the address, downloads."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.interpolate import PchipInterpolator

from crossover.tables.columns import COLUMNS
from crossover.tables.reference_files import Facts, Reference
from opened_page import Open, Opened
from report_pages import Page, write_page

pytestmark = pytest.mark.slow

RESIDENT = "resident"


def readout_at(opened: Opened, study: str, size: str, over: str = "size") -> str:
    if opened.has_control("study"):
        opened.choose("study", study)
    if opened.has_control("over"):
        opened.choose("over", over)
    opened.chart.locator("[name=size]").fill(size)
    opened.page.keyboard.press("Enter")
    return opened.readout


# The CPU takes 1 us per neuron; the GPU 0.5 ms (0.4 ms with resident data) at every size.
@pytest.mark.parametrize(
    ("size", "over", "text"),
    [
        ("400", "size", "At 400 neurons: resident: CPU 400 µs (95 % CI 390 µs to 410 µs), GPU 400 µs"),
        ("0.006M", "parameters", "At 6,000 parameters (between those measured): resident: CPU 600 µs"),
    ],
)
def test_times_are_interpolated_between_measured_sizes(
    run: Page, open_page: Open, size: str, over: str, text: str
) -> None:
    assert readout_at(open_page(run.path), "widths", size, over).startswith(text)


def test_an_invalid_size_gives_a_message(run: Page, open_page: Open) -> None:
    assert readout_at(open_page(run.path), "widths", "0") == (
        "“0” is not a size; type a number above 0, such as 2,000 or 703 k."
    )


def test_a_size_beyond_those_measured_names_their_range(row: Any, tmp_path: Path, open_page: Open) -> None:
    rows = [row(study="wide", size=n, parameters=at) for n, at in ((5, 22), (50, 11_200_000))]
    opened = open_page(write_page(pd.DataFrame(rows), tmp_path).path)
    beyond = readout_at(opened, "wide", "900M", "parameters")
    assert beyond.startswith("Only 22 parameters to 11.2 million parameters were measured. At 11.2 million param")


def test_keys_move_the_slider_to_the_next_measured_size(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    slider = opened.chart.get_by_role("slider")
    slider.focus()
    for key, size in {"Home": "100", "ArrowRight": "200", "End": "1,600", "ArrowLeft": "800"}.items():
        opened.page.keyboard.press(key)
        assert slider.get_attribute("aria-valuetext") == f"{size} neurons"
        assert opened.readout.startswith(f"At {size} neurons: ")


def test_curves_are_those_from_which_crossovers_are_computed(run: Page, open_page: Open) -> None:
    """Compare with SciPy's PCHIP on logarithms: a curve that rises, turns and is flat, and a curve of two points."""
    opened = open_page(run.path)
    for ats, values in [((1, 10, 20, 400, 500), (3, 2, 9, 9, 40)), ((1, 2, 3), (1, 5, 4)), ((5, 50), (1, 7))]:
        sizes = np.geomspace(ats[0], ats[-1], 40)
        curve = opened.page.evaluate(
            "([points, sizes]) => sizes.map(Crossover.curveOf(points))",
            [[{"at": at, "value": value} for at, value in zip(ats, values, strict=True)], sizes.tolist()],
        )
        if len(ats) == 2:
            expected = np.interp(np.log(sizes), np.log(ats), np.log(values))
        else:
            expected = PchipInterpolator(np.log(ats), np.log(values))(np.log(sizes))
        np.testing.assert_allclose(np.log(curve), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("trials", "ratios", "size", "text"),
    [
        # Three trials 1 % apart: the interval of a ratio is about ±2.3 %.
        (3, (0.5, 0.99, 2.0), "100", "inconclusive (ratio 0.990, 95 % CI 0.968 to 1.01)"),
        (3, (0.25, 0.5, 2.0), "30", "CPU 3.09x faster than GPU (95 % CI 1.96 to 4.09)"),
        # The union of both neighbours' intervals includes 1.
        (3, (0.5, 0.9, 2.0), "900", "inconclusive (ratio 1.9"),
        # A single trial counts if one side is at least twice as fast; between two sizes, both must meet that.
        (1, (0.5, 1.2, 2.0), "100", "inconclusive (ratio 1.20, single trial)"),
        (1, (0.4, 2.1, 4.0), "100", "GPU 2.10x faster than CPU (single trial)"),
    ],
)
def test_a_side_is_faster_only_if_the_intervals_exclude_1(
    row: Any, tmp_path: Path, open_page: Open, trials: int, ratios: tuple[float, ...], size: str, text: str
) -> None:
    times = [
        row(study="near", size=at, parameters=at, device=device, trial=trial)
        | {"step_time_s": 1e-3 * (1 / ratio if device == "cuda" else 1) * 1.01 ** (trial - 2)}
        for at, ratio in zip((10, 100, 1000), ratios, strict=True)
        for device in ("cpu", "cuda")
        for trial in range(1, trials + 1)
    ]
    opened = open_page(write_page(pd.DataFrame(times), tmp_path).path)
    assert f": {text}" in readout_at(opened, "near", size)
    opened.choose("show", "speedup")
    assert f": {text}" in opened.readout


def test_a_significant_size_within_the_interval_of_a_crossover_gives_that_as_reason(
    row: Any, tmp_path: Path, open_page: Open
) -> None:
    """At 100, the GPU is 2 % slower with trials 0.5 % apart; noise of 4 % elsewhere widens the crossover's interval."""
    times = [
        row(study="near", size=size, parameters=size, device=device, trial=trial)
        | {"step_time_s": 1e-3 * (1 / ratio if device == "cuda" else 1) * noise ** (trial - 2)}
        for size, ratio, noise in ((10, 0.5, 1.04), (100, 0.98, 1.005), (1000, 2.0, 1.04))
        for device in ("cpu", "cuda")
        for trial in (1, 2, 3)
    ]
    opened = open_page(write_page(pd.DataFrame(times), tmp_path).path)
    reason = "inconclusive (ratio 0.980, 95 % CI 0.969 to 0.991; within the interval of the crossover)"
    assert reason in readout_at(opened, "near", "100")


def test_repeats_far_apart_are_drawn_at_their_values(row: Any, tmp_path: Path, open_page: Open) -> None:
    """An interval that continues outside the chart ends in an arrow head, whose sides are oblique."""
    times = [
        row(study="spread", size=size, parameters=size, device=device, trial=trial, step_time_s=1e-3 * ms)
        for size in (10, 100)
        for device in ("cpu", "cuda")
        for trial, ms in enumerate((1, 2, 40) if (size, device) == (100, "cuda") else (1, 1.01, 0.99), 1)
    ]
    opened = open_page(write_page(pd.DataFrame(times), tmp_path).path)
    opened.choose("show", "step_time_s")
    dots = opened.chart.locator("svg circle[r='2.2']").evaluate_all(
        "all => all.slice(-3).map((dot) => dot.cy.baseVal.value)"
    )
    fastest, slower, slowest = dots
    assert (fastest - slowest) / (fastest - slower) == pytest.approx(np.log(40) / np.log(2))
    opened.choose("show", "speedup")
    heads = opened.chart.locator("svg .interval").evaluate_all(
        "all => all.map((bar) => bar.getAttribute('d').includes('L'))"
    )
    assert heads == [False, True]


def test_series_and_metric_can_be_chosen(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    opened.choose("line", RESIDENT)
    assert "as published" not in opened.readout
    opened.choose("show", "speedup")
    assert "equally fast" in opened.texts
    readout_at(opened, "widths", "800")
    assert "GPU 2.00x faster than CPU (95 % CI 1" in opened.readout
    readout_at(opened, "widths", "200")
    assert "CPU 2.00x faster than GPU (95 % CI 1" in opened.readout
    opened.choose("line", "all lines")
    assert "as published: " in opened.readout
    opened.choose("show", "peak_bytes")
    assert "GPU 200 MB" in opened.readout


@pytest.mark.parametrize(
    ("protocols", "shown"),
    [
        (["resident"], "all lines"),
        (["resident", "as_published", "loaded"], "resident"),
    ],
)
def test_a_chart_of_several_machines_opens_with_all_of_them(
    row: Any, tmp_path: Path, open_page: Open, protocols: list[str], shown: str
) -> None:
    """The first protocol is the first that the study lists."""
    trials = [
        row(study="widths", protocol=protocol, machine=machine, device=device, size=size, trial=trial)
        for machine in ("laptop", "h100", "h200")
        for protocol in sorted(protocols)
        for device in ("cpu", "cuda")
        for size in (100, 400)
        for trial in (1, 2)
    ]
    table = pd.DataFrame(trials).reindex(columns=list(COLUMNS))
    opened = open_page(write_page(table, tmp_path, spec={"protocols": protocols}).path)
    assert opened.chart.locator("[name=line]").input_value() == shown
    assert all(any(machine in text for text in opened.texts) for machine in ("laptop", "h100", "h200"))


def test_crossovers_are_marked_with_their_intervals(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    assert "published 700" in opened.texts
    marks = [words for words in opened.texts if "crossover " in words]
    assert len(marks) == 2
    assert all(" to " in words for words in marks)


def test_a_number_of_steps_gives_the_crossover_of_whole_jobs(row: Any, tmp_path: Path, open_page: Open) -> None:
    """The CPU takes 1 us per neuron, the GPU 0.1 ms plus 1 s start-up: jobs of 1,000 steps cross at 1,100 neurons."""
    rows = [
        row(
            **{"study": "jobs", "size": size, "parameters": size, "size_name": "neurons", "device": device},
            **{"step_time_s": seconds, "first_step_s": seconds, "spent_s": json.dumps({"context": 0, "build": build})},
        )
        for size in (10, 1000, 1100, 10_000)
        for device, seconds, build in (("cpu", size * 1e-6, 0.0), ("cuda", 1e-4, 1.0))
    ]
    opened = open_page(write_page(pd.DataFrame(rows), tmp_path).path)
    steps = opened.chart.locator("[name=steps]")
    assert any(words.startswith("crossover 100") for words in opened.texts)
    steps.fill("1,000")
    opened.page.keyboard.press("Enter")
    assert "crossover 1,100 (between 10 and 10,000; jobs of 1,000 steps)" in opened.texts
    assert readout_at(opened, "jobs", "10000").endswith(
        ": GPU 9.09x faster than CPU in all, start-up included (single trial)."
    )
    assert "steps=1000" in opened.page.url
    steps.fill("")
    opened.page.keyboard.press("Enter")
    assert any(words.startswith("crossover 100") for words in opened.texts)
    steps.fill("none")
    opened.page.keyboard.press("Enter")
    assert opened.readout.startswith("“none” is not a number of steps")


def test_jobs_with_several_trials_have_welchs_interval(row: Any, tmp_path: Path, open_page: Open) -> None:
    """Jobs of 1,000 steps: the CPU takes 1 us per step and neuron, the GPU 0.1 ms per step plus about 1 s of start-up.

    At 1,000 neurons the CPU is ahead by 9 %, which is not significant when start-ups vary by 10 %.
    """
    spreads = (0.9, 0.97, 1.0, 1.12)
    rows = [
        row(
            **{"study": "jobs", "size": size, "parameters": size, "size_name": "neurons", "device": device},
            **{"trial": trial, "step_time_s": step_s, "first_step_s": step_s},
            spent_s=json.dumps({"context": 0, "build": build * spread}),
        )
        for size in (10, 1000, 10_000)
        for device, step_s, build in (("cpu", size * 1e-6, 0.0), ("cuda", 1e-4, 1.0))
        for trial, spread in enumerate(spreads, 1)
    ]
    opened = open_page(write_page(pd.DataFrame(rows), tmp_path).path)
    opened.choose("show", "speedup")
    opened.chart.locator("[name=steps]").fill("1,000")
    opened.page.keyboard.press("Enter")
    totals_s = 0.1 + np.array(spreads)
    half = stats.t.ppf(0.975, 3) * totals_s.std(ddof=1) / 2 / totals_s.mean()
    speedup = 10 / totals_s.mean()
    low, high = speedup * np.exp(-half), speedup * np.exp(half)
    assert readout_at(opened, "jobs", "10000").endswith(
        f": GPU {speedup:.3g}x faster than CPU in all, start-up included (95 % CI {low:.3g} to {high:.3g})."
    )
    assert ": inconclusive in all, start-up included (ratio 0.911, 95 % CI " in readout_at(opened, "jobs", "1000")
    assert any("(between 10 and 10,000; jobs of 1,000 steps)" in words for words in opened.texts)


def test_over_cores_an_accelerator_is_constant(row: Any, tmp_path: Path, open_page: Open) -> None:
    """A CPU whose speed is proportional to its cores; on 6 of 16 it takes 1 ms, as the GPU does."""
    threads = {"cpu-1": 1, "cpu-4": 4, "cpu-8": 8, "cpu": 16, "cuda": 16}
    rows = [
        row(
            **{"study": "cores", "device": device, "threads": count, "trial": trial},
            **{"step_time_s": seconds * 1.01 ** (trial - 2), "first_step_s": seconds * 1.01 ** (trial - 2)},
            spent_s=json.dumps({"context": 0, "build": 1.0 if device == "cuda" else 0.0}),
        )
        for device, count in threads.items()
        for seconds in [1e-3 if device == "cuda" else 6e-3 / count]
        for trial in (1, 2, 3)
    ]
    spec = {"x_axis": "cpu_threads", "cpu_threads": [1, 4, 8]}
    opened = open_page(write_page(pd.DataFrame(rows), tmp_path, spec=spec).path)
    assert opened.chart.locator("[name=over]").input_value() == "cpu_threads"
    assert any(words.startswith("crossover 6") for words in opened.texts)
    assert "At 1 CPU core: CPU 6.00 ms" in readout_at(opened, "cores", "1", "cpu_threads")
    assert ": GPU 6.00x faster than CPU (95 % CI 5." in opened.readout
    assert ": CPU 1.33x faster than GPU (95 % CI 1." in readout_at(opened, "cores", "8", "cpu_threads")
    opened.choose("show", "speedup")
    assert opened.readout.startswith("At 8 CPU cores: CPU 1.33x faster than GPU")
    # The GPU has 1 s more start-up: a job of 1,000 steps takes it 2 s, as long as the CPU on 3 cores.
    opened.chart.locator("[name=steps]").fill("1,000")
    opened.page.keyboard.press("Enter")
    assert any(words.startswith("crossover 3") and "jobs of 1,000 steps" in words for words in opened.texts)
    readout = readout_at(opened, "cores", "1", "cpu_threads")
    assert ": GPU 3.00x faster than CPU in all, start-up included (95 % CI " in readout


def test_a_published_value_is_marked_with_the_series_that_it_matches(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    marks = [
        {
            **{"metric": "step_time_s", "value": 2e-4, "colour": "#D55E00", "shape": "s"},
            **{"words": "GPU, T4", "on": {"size": 400, **where}},
        }
        for where in ({}, {"protocol": "as_published"}, {"protocol": "loaded"}, {"batch_size": 7})
    ]
    opened.page.evaluate("marks => { Crossover.data().published.widths.marks = marks }", marks)
    opened.choose("study", "depths")
    opened.choose("study", "widths")
    assert "published: GPU, T4 200 µs" in readout_at(opened, "widths", "400")
    squares = opened.chart.locator("svg .published title")
    assert squares.all_text_contents() == ["published: GPU, T4, 400 neurons: 200 µs"] * 2
    opened.choose("line", RESIDENT)
    assert squares.count() == 1
    opened.chart.get_by_role("checkbox", name="published").uncheck()
    assert squares.count() == 0


def test_the_split_of_a_step_is_shown_at_each_size(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    shares = {"loader": 0.25, "launch": 0.75}
    opened.page.evaluate(
        """shares => {
          const { rows, splits } = Crossover.data();
          splits.words = Object.keys(shares);
          const deep = rows.filter(({ study, device }) => study === 'depths' && device === 'cuda');
          for (const { place } of deep) splits.cells[place] = Object.values(shares);
        }""",
        shares,
    )
    opened.choose("study", "depths")
    opened.choose("show", "split")
    assert opened.chart.locator(".legend").inner_text().split() == list(shares)
    assert not opened.has_control("over")
    assert "GPU, 2 linear layers" in opened.texts
    opened.chart.get_by_role("slider").focus()
    opened.page.keyboard.press("Home")
    assert opened.readout == "At 2 linear layers: GPU: launch 75 %, loader 25 %."
    opened.page.keyboard.press("ArrowRight")
    assert opened.readout.startswith("At 3 linear layers: ")


def test_within_the_estimated_crossover_with_a_reference_no_side_is_faster(
    rows: pd.DataFrame, tmp_path: Path, open_page: Open
) -> None:
    """This CPU takes 1 us per neuron, the reference's half, its GPU 0.5 ms, nearly all on the host: 1 ms here.

    The GPU of another reference takes a fifth, and is faster at all sizes.
    """
    plain = rows[(rows["study"] == "widths") & (rows["protocol"] == "as_published")]
    plain = plain.assign(model_key="key", device_busy_s=1e-9)
    there = plain.assign(machine="far").reindex(columns=list(COLUMNS))
    there["step_time_s"] = there["step_time_s"].where(there["device"] != "cpu", there["step_time_s"] / 2)
    facts = Facts("far", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)
    faster = there.assign(machine="near", device_name="NVIDIA H100 80GB HBM3")
    faster["step_time_s"] = faster["step_time_s"].where(faster["device"] == "cpu", faster["step_time_s"] / 5)
    near = replace(facts, name="near", device_name="NVIDIA H100 80GB HBM3")
    references = [Reference(facts, there), Reference(near, faster)]
    here = plain[plain["device"] == "cpu"]
    opened = open_page(write_page(here, tmp_path, references=references).path)
    settled = readout_at(opened, "widths", "1600")
    assert " (estimated) 1.60x faster than CPU (95 % CI 1.19 to 2.14)" in settled
    within = readout_at(opened, "widths", "1000")
    name, ratio = "GPU (Brand G1) (estimated)", "ratio 1.00, 95 % CI 0.597 to 2.14"
    assert f"inconclusive for {name} ({ratio}; estimated crossover with this CPU: " in within
    assert within.count("inconclusive") == 1
    assert "GPU (NVIDIA H100 80GB HBM3) (estimated) 5.00x faster than CPU (95 % CI 2.7" in within
    assert any("Brand G1 would cross at" in text for text in opened.texts)
    opened.choose("show", "speedup")
    opened.chart.get_by_role("checkbox", name="measured elsewhere").uncheck()
    assert opened.readout.startswith("At 1,000 neurons (between those measured): CPU 1.00 ms")


def test_several_gpus_without_a_cpu_are_compared_with_one(row: Any, tmp_path: Path, open_page: Open) -> None:
    """Two GPUs take 1.5 ms, and one 1 ms at 100 neurons and 3 ms at 400."""
    times = {"cuda": {100: 1e-3, 400: 3e-3}, "cuda-2": {100: 1.5e-3, 400: 1.5e-3}}
    trials = [
        row(study="widths", device=device, size=size, trial=trial, size_name="neurons", step_time_s=time * 1.01**trial)
        for device, of_sizes in times.items()
        for size, time in of_sizes.items()
        for trial in (1, 2, 3)
    ]
    opened = open_page(write_page(pd.DataFrame(trials).reindex(columns=list(COLUMNS)), tmp_path).path)
    assert "GPU 3.06 ms" in (text := readout_at(opened, "widths", "400"))
    assert "2 GPUs 2.00x faster than 1 GPU (95 % CI 1.9" in text
    assert "crossover 167 (100 to 400)" in opened.texts
    opened.choose("show", "speedup")
    assert "speed-up over 1 GPU" in opened.texts
    assert readout_at(opened, "widths", "100").startswith("At 100 neurons: 1 GPU 1.50x faster than 2 GPUs (95 % CI 1.4")


def test_the_address_restores_the_chart(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    readout_at(opened, "widths", "700")
    opened.choose("show", "speedup")
    opened.chart.get_by_role("checkbox", name="published").uncheck()
    address, text = opened.page.url, opened.readout
    again = open_page(run.path, address.partition(".html")[2])
    assert again.chart.locator("[name=line]").input_value() == "all lines"
    assert again.readout == text
    assert not again.chart.get_by_role("checkbox", name="published").is_checked()


def download(opened: Opened, kind: str) -> bytes:
    with opened.page.expect_download() as waited:
        opened.chart.get_by_role("button", name=kind).click()
    return bytes(waited.value.path().read_bytes())


def test_the_chart_is_downloaded_as_pictures_and_numbers(run: Page, open_page: Open) -> None:
    opened = open_page(run.path)
    assert download(opened, "SVG").startswith(b"<svg")
    assert download(opened, "PNG").startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(download(opened, "CSV").decode())))
    assert len(rows) == 19
    first = next(row for row in rows if (row["size"], row["line"]) == ("100", "as published"))
    assert float(first["step_time_s"]) == pytest.approx(1e-4)


@pytest.fixture(scope="module")
def deep_run(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A run over depth; each layer quadruples the number of parameters, up to about 11 million."""
    plain = rows[(rows["study"] == "widths") & (rows["protocol"] == "resident") & (rows["size"] == 800)]
    layers = [
        plain.assign(size=n, size_name="layers", parameters=3 * 4**n, step_time_s=plain["step_time_s"] * n / 5)
        for n in range(2, 12)
    ]
    return write_page(pd.concat(layers), tmp_path_factory.mktemp("deep"))


# JavaScript that returns the labels that overlap, and those that extend beyond the chart.
CROWDED = """() => {
  const plot = document.querySelector('#chart .plot');
  const boxes = [...plot.querySelectorAll('svg text')].map((word) => [word.textContent, word.getBoundingClientRect()]);
  const { left, right } = plot.getBoundingClientRect();
  const beside = (a, b) => a.right + 7 <= b.left || b.right + 7 <= a.left;
  const apart = (a, b) => beside(a, b) || a.bottom <= b.top + 3 || b.bottom <= a.top + 3;
  const over = boxes.filter(([, a]) => boxes.some(([, b]) => a !== b && !apart(a, b)));
  const out = boxes.filter(([, a]) => a.left < left - 1 || a.right > right + 1);
  return [over, out].map((labels) => labels.map(([text]) => text));
}"""


@pytest.mark.parametrize("width", [390, 1000])
@pytest.mark.parametrize("which", ["run", "deep_run"])
def test_no_labels_overlap(which: str, width: int, request: pytest.FixtureRequest, open_page: Open) -> None:
    opened = open_page(request.getfixturevalue(which).path, viewport={"width": width, "height": 800})
    for axis in ("parameters", "size"):
        opened.choose("over", axis)
        assert opened.page.evaluate(CROWDED) == [[], []], axis


def test_a_second_size_of_a_function_has_its_own_name(row: Any, tmp_path: Path, open_page: Open) -> None:
    names = {"study": "mine", "protocol": "as_published", "size_name": "m", "batch_name": "k", "parameters": None}
    rows = [
        row(**names, size=m, batch_size=k, device=device, step_time_s=m * k * 1e-6)
        for m in (10, 100)
        for k in (1, 8)
        for device in ("cpu", "cuda")
    ]
    opened = open_page(write_page(pd.DataFrame(rows), tmp_path).path)
    assert opened.chart.locator("[name=over] option").all_text_contents() == ["m", "k"]
    assert opened.readout.startswith("At m = ")
    assert "k = 8: CPU" in opened.readout
