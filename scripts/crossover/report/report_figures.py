"""The figures of the report: what each kind shows, and the files that hold them."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from crossover.reading import UnreadableError, read_text

CAPTIONS = {
    "times": "Time over size, both axes logarithmic. Lines: the cells' times with their 95 % interval over trials; "
    "dots: trials, hollow at sizes that refinement added; upright line: the crossover, with its 95 % interval where "
    "there is one; grey, or dotted with squares: published; thin dots: the cost model, a guide whose misses the table "
    "below names. Cross: a size that did not end well.",
    "speedups": "How many times as fast as the CPU, with the 95 % interval over trials; above 1 the accelerator wins. "
    "Hollow: sizes that refinement added. Grey: published crossover. Cross: a size that did not end well on a device.",
    "precisions": "How many times as fast as the plain precision and execution on the same device, with the 95 % "
    "interval over trials; above 1 it is faster. Hollow: sizes that refinement added. Cross: a size that did not end "
    "well.",
    "memory": "Peak memory of a step, of the middle trial, and all that the device has; on the GPU what tensors needed "
    "(the allocator and the driver take more), on the CPU what the step held. Colours: what the peak is for. Cross: a "
    "cell that did not end well.",
    "host_share": "Share of a step's wall time in which the device runs nothing, by the profiler: it waits for Python, "
    "dispatch and data. With the 95 % interval where several trials know it.",
    "energy": "Energy of a step by the device's own counter, and what a million steps cost at the config's prices, "
    "both with the 95 % interval over trials.",
    "comparison": "A row a cell: its time with the 95 % interval over trials, and its memory. Hollow: projected from "
    "fewer steps than a run has. In brackets: one epoch of a run. Grey diamonds: published, on the hardware named.",
    "latency": "The right ways to measure a latency and each mistake; the trials' passes all together. Box: quartiles; "
    "whiskers: 1st to 99th percentile; ring: mean, with the standard deviation beside it; upright line: the right one. "
    "Last: how far off a mistake's mean is, by the ratio of a trial's means averaged over trials (without warm-up: "
    "over the later half of the same steps); grey where the trials leave that open. Grey diamonds: published.",
    "throughput": "Samples per second over batch size, both axes logarithmic, with the 95 % interval over trials. "
    "Ring: a line's optimum. Hollow square: the largest batch that fits, where it was searched, timed in one process. "
    "Grey diamonds: published, on the hardware named. Cross: a size that did not end well.",
    "trade_off": "Time of a sample over memory: down and to the left is better in both. The grey line joins what "
    "nothing beats in both. Grey diamonds: published.",
    "utilisation": "Floating-point operations that a step achieves per second, with the 95 % interval over trials. "
    "Hollow: sizes that refinement added. Ring: a line's best, with its share of what a plain matrix product reached "
    "on the device in the same precision.",
}
"""What each kind of figure shows."""


@dataclass(frozen=True)
class FigureFile:
    """A figure of a study; the kind of figure is its file's name."""

    path: Path

    @property
    def caption(self) -> str:
        """What the figure shows."""
        return CAPTIONS[self.path.stem]

    @property
    def takeaway(self) -> str:
        """What the figure shows in one line, which stands in a file beside it; empty where there is nothing to say."""
        path = self.path.with_suffix(".txt")
        return read_text(path, "takeaway") if path.is_file() else ""

    @property
    def study(self) -> str:
        """The study it belongs to, by its folder."""
        return self.path.parent.name

    @property
    def source(self) -> str:
        """The figure as a data URI, so that the page needs no other file; raises UserError where it is cut off."""
        text = read_text(self.path, "figure")
        try:
            ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise UnreadableError(self.path, f"not a readable figure ({error})") from None
        return f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"


def link_to(path_to_file: Path, path_to_page: Path) -> str:
    """The address of a file as a page links to it, relative to the page's folder."""
    return quote(Path(os.path.relpath(path_to_file, path_to_page.parent)).as_posix())
