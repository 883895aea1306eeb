"""How many comparisons each study states, of which each is corrected for all, and how many may be false by chance.

Remedies do not count: one is named only if it removes the largest part of a step, which chance does not make it do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from crossover.compare.intervals import FALSE_PER_STUDY, Interval, holm
from crossover.compare.pairings import REFERENCE, Pairing
from crossover.compare.plane import SERIES_OF_PLANE
from crossover.config.claim_forms import RatioWithin
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.study import Study
from crossover.config.words import BASELINE, COLD, FROM_HOST, PROTOCOLS, is_cpu, series_axes
from crossover.tables.frames import on_all_cores
from crossover.tables.registry import DETERMINISTIC
from crossover.tables.run_tables import RunTables
from crossover.topics.answer import Answer
from crossover.topics.claims.cell_claims import ratio_of_sides, rests_on_latencies
from crossover.topics.claims.findings import NoFindingError
from crossover.topics.comparisons import comparison_answers
from crossover.topics.latency.table import p_values_of_mistakes
from crossover.topics.references.answers import elsewhere_ratios


def together_of(tables: RunTables, study: Study, pairs: Sequence[Pairing]) -> int:
    """The number of comparisons for which to correct each of a study's.

    `tables` are the study's, without crossovers and latencies, and with ratios that are not corrected. `pairs` are
    those of its crossovers; estimates with GPUs measured elsewhere count only without a GPU here.
    """
    is_alone = all(map(is_cpu, tables.cells["device"]))
    stated = [pairing for pairing in pairs if is_alone or pairing.pair != REFERENCE]
    p_values = [
        *_of_crossovers(stated, study),
        *(ratio.p_value() for _, ratio in (elsewhere_ratios(tables, study.x_axis) if is_alone else ())),
        *p_values_of_mistakes(tables.measurements),
        *_of_claims(tables, study),
        *[math.nan] * _others(tables, study),
    ]
    return holm(p_values)


def _of_crossovers(pairs: Sequence[Pairing], study: Study) -> Iterator[float]:
    if asks_for_crossovers(study.figures):
        of_pairs = (pairing.p_value(cost) for pairing in pairs for cost in pairing.costs)
        yield from (p_value for p_value in of_pairs if p_value is not None)


def _of_claims(tables: RunTables, study: Study) -> Iterator[float]:
    """Claims about ratios that are no other comparison: how surely each lies on its side of the nearest limit."""
    for form in (claim.form for claim in study.claims):
        if not isinstance(form, RatioWithin) or rests_on_latencies(form):
            continue
        for machine in tables.measurements["machine"].unique():
            of_machine = tables.measurements[tables.measurements["machine"] == machine]
            try:
                ratio, _ = ratio_of_sides(form.of, form.over, study.name, on_all_cores(of_machine), study.steps_per_run)
            except NoFindingError:
                continue
            if not isinstance(ratio, Interval):
                yield max(ratio.p_value(math.log(limit)) for limit in form.limits)


def _others(tables: RunTables, study: Study) -> int:
    """The number of comparisons without a p-value of their own: they are corrected for, and never count as settled."""
    lines = tables.measurements.drop_duplicates([*series_axes(study.x_axis), "device"])
    asked = len(set(study.asks.metrics) - DETERMINISTIC.keys()) * len(lines) if study.asks else 0
    trained = int(len(tables.quality) > 0)
    if asks_for_crossovers(study.figures):
        ranked = {*tables.cells["machine"], *tables.reference_cells["machine"]}
        is_transfer = lines["protocol"].isin([*FROM_HOST, COLD]) & (lines["device"] != BASELINE)
        has_resident = (lines["protocol"] == PROTOCOLS[0]).any()
        transfers = int(is_transfer.sum()) if has_resident else 0
        on_gpu = lines.loc[[not is_cpu(device) for device in lines["device"]], [*SERIES_OF_PLANE, "device"]]
        planes = len(on_gpu.drop_duplicates()) if study.has_plane else 0
        return asked + trained + transfers + int(len(ranked) > 1) + planes
    drawn = [answer for answer in comparison_answers(tables, study, together=1) if answer.kind != "latency"]
    return asked + trained + len(drawn)


ALSO_IN_SUMMARY = ("ranking", "elsewhere", "ratio")
"""Kinds of answers that each summary lists, also if they are no main answer."""


def expected_false(answers: Iterable[Answer], claims: pd.DataFrame) -> tuple[int, float]:
    """The number of statements that compare in each summary, and how many of a report's may be false by chance.

    A summary has the main answers, those of ALSO_IN_SUMMARY, and the claims with a verdict; the page has further
    answers. The second number is a bound if nothing differs: FALSE_PER_STUDY for each study that compares.
    """
    studies = [one.study for one in answers if one.compares and (one.main or one.kind in ALSO_IN_SUMMARY)]
    studies += claims.loc[claims["verdict"] != "no_data", "study"].tolist()
    return len(studies), FALSE_PER_STUDY * len(set(studies))
