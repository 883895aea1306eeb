from __future__ import annotations

import pytest

from crossover.analysis.style import count_text, device_label, seconds_text, short_name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (6.54, "6.5"),
        (9.99, "10"),
        (678, "680"),
        (1234, "1,200"),
        (9999, "10 k"),
        (310_400, "310 k"),
        (703_142, "700 k"),
        (999_999, "1 million"),
        (2_804_390, "2.8 million"),
        (25e9, "25 billion"),
        (0, "0"),
    ],
)
def test_counts(value: float, text: str) -> None:
    assert count_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.4e-9, "0.0034 µs"),
        (1e-6, "1.00 µs"),
        (8.126e-4, "813 µs"),
        (9.996e-4, "1.00 ms"),
        (3.5e-3, "3.50 ms"),
        (0.25, "250 ms"),
        (12.04, "12.0 s"),
        (119.6, "120 s"),
        (506.0, "8.43 min"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("AMD EPYC 9D24 96-Core Processor", "AMD EPYC 9D24"),
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "Intel Xeon Gold 6248"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("Apple M3 Pro", "Apple M3 Pro"),
    ],
)
def test_names_are_cut_to_what_tells_devices_apart(name: str, short: str) -> None:
    assert short_name(name) == short


def test_device_labels() -> None:
    assert device_label("cuda", "NVIDIA H200") == "GPU (NVIDIA H200)"
    assert device_label("cpu", None) == "CPU"
