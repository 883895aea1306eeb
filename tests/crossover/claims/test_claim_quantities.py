from __future__ import annotations

from typing import Any

import pytest

from crossover.claims.claim_quantities import metric_words, quantity
from crossover.config.claim_forms import read_claim
from crossover.tables.metrics import metrics

SPEEDUP = {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "range": [4, 5]}
LATENCY = {"of": {"metric": "latency_p99_s"}, "over": {"metric": "latencies_s"}, "range": [1, 2]}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"crossover_between": {"range": [1, 2]}}, "crossover in neurons"),
        (
            {"crossover_between": {"range": [1, 2], "where": {"protocol": "as_published", "batch_size": 32}}},
            "crossover in neurons (as published, batch 32)",
        ),
        ({"speedup_between": SPEEDUP}, "time of a step, CPU over GPU"),
        (
            {"speedup_between": {**SPEEDUP, "where": {"size": 2000, "variant": "channels_last"}}},
            "time of a step, CPU over GPU (size 2,000, channels last)",
        ),
        (
            {
                "ratio_below": {
                    "metric": "peak_allocated_bytes",
                    "of": {"precision": "amp-fp16", "device": "cuda"},
                    "over": {"precision": "fp32", "device": "cuda"},
                    "limit": 1,
                }
            },
            "peak memory of tensors, amp-fp16 over fp32 (GPU)",
        ),
        (
            {"ratio_between": {**LATENCY, "where": {"device": "cuda"}}},
            "99th percentile of the latency over latency (GPU)",
        ),
        (
            {
                "ratio_between": {
                    "of": {"metric": "latency_p99_s", "size": 1},
                    "over": {"metric": "latencies_s", "size": 2},
                    "range": [1, 2],
                }
            },
            "99th percentile of the latency (size 1) over latency (size 2)",
        ),
        (
            {
                "ratio_below": {
                    "of": {"metric": "latency_p50_s"},
                    "over": {"metric": "latency_p99_s"},
                    "where": {"device": "cuda"},
                    "limit": 0.9,
                }
            },
            "median latency over 99th percentile of the latency (GPU)",
        ),
        (
            {
                "ratio_below": {
                    "metric": "severe_outliers",
                    "of": {"device": "cpu"},
                    "over": {"device": "cuda"},
                    "limit": 1,
                }
            },
            "samples beyond the third quartile + 3 interquartile ranges, CPU over GPU",
        ),
        (
            {"same_quality": {"metric": "macro_f1", "within": 0.01}},
            "largest difference of macro-averaged F1 from the CPU's in fp32, paired by seed",
        ),
        (
            {"same_quality": {"metric": "accuracy", "within": 0.01, "where": {"device": "cuda"}}},
            "largest difference of accuracy from the CPU's in fp32, paired by seed (GPU)",
        ),
    ],
)
def test_what_is_measured_in_words(form: dict[str, Any], words: str) -> None:
    assert quantity(read_claim({"statement": "x", **form}, "mine", "here"), "neurons") == words


def test_no_metric_goes_by_its_columns_name() -> None:
    assert [name for name in metrics() if "_" in metric_words(name)] == []
