from __future__ import annotations

import pytest
from crossover.answers.wording import count_text, known_count_text

from crossover.figures.style import (
    PALETTE,
    bytes_text,
    cores_text,
    device_label,
    ink,
    money_text,
    number_text,
    percent_text,
    seconds_text,
    share_text,
    short_name,
    side_word,
    small_text,
    spaced,
)


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
    ("value", "text"),
    [(6.544, "6.54"), (12.34, "12.3"), (1112, "1,110"), (603_400, "603 k"), (1_689_000, "1.69 million")],
)
def test_counts_to_three_digits(value: float, text: str) -> None:
    assert count_text(value, 3) == text


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
        (3599.0, "60 min"),
        (3600.0, "1 h"),
        (4320.0, "1.2 h"),
        (147_600.0, "41 h"),
        (293_760.0, "3.4 days"),
        (1e9, "31.7 years"),
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


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (2.524, "2.52"), (9.996, "10.0"), (107.228, "107"), (1239.6, "1,240"), (0, "0")],
)
def test_numbers(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(512, "512 B"), (17_250, "17.2 kB"), (999_600_000, "1.00 GB"), (1_350_681_600, "1.35 GB"), (139e9, "139 GB")],
)
def test_memory(value: float, text: str) -> None:
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(22, "22"), (1414, "1,414"), (9999, "9,999"), (176_806, "177 k"), (2_804_390, "2.8 million")]
)
def test_known_counts_keep_every_digit_that_looks_exact(value: float, text: str) -> None:
    assert known_count_text(value) == text


@pytest.mark.parametrize(("share", "text"), [(0.0011, "0.11 %"), (0.0416, "4.2 %"), (0.66, "66 %"), (1.532, "153 %")])
def test_shares_in_two_digits_are_no_powers(share: float, text: str) -> None:
    assert percent_text(share) == text


@pytest.mark.parametrize(("value", "text"), [(0.0022, "0.0022"), (0.13, "0.13"), (0, "0"), (3.9e-5, "3.9 × 10⁻⁵")])
def test_small_shares(value: float, text: str) -> None:
    assert small_text(value) == text


def test_names_of_the_config_are_words() -> None:
    assert spaced("channels_last") == "channels last"


def test_words_are_dark_enough_to_read() -> None:
    """Contrast with white of at least 4.5, by the Web Content Accessibility Guidelines' formula."""

    def luminance(colour: str) -> float:
        shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert min(1.05 / (luminance(ink(colour)) + 0.05) for colour in PALETTE) >= 4.5


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 core"), (2, "2 cores"), (5.64, "5.6 cores"), (9.96, "10 cores"), (11.3, "11 cores"), (128, "128 cores")],
)
def test_cores(count: float, text: str) -> None:
    assert cores_text(count) == text


def test_a_cpu_side_is_named_by_its_cores() -> None:
    assert side_word("cpu", 16) == "CPU on 16 cores"
    assert (side_word("cpu-half", 8), side_word("cpu-half")) == ("CPU on 8 cores (half)", "CPU on half of its cores")
    assert (side_word("cpu"), side_word("cuda", 16)) == ("CPU", "GPU")
    assert device_label("cpu-1", "Brand C1") == "CPU on 1 core (Brand C1)"


def test_shares_are_whole_per_cents_and_nothing_small_is_none() -> None:
    assert [share_text(share) for share in (0.0, 0.004, 0.006, 0.68, 1.0)] == [
        "0 %",
        "under 1 %",
        "1 %",
        "68 %",
        "100 %",
    ]


def test_amounts_have_two_digits_and_no_power() -> None:
    assert [money_text(value) for value in (0.00123, 0.852, 12.4, 4321.0)] == ["0.0012", "0.85", "12", "4,321"]
