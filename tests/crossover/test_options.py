from __future__ import annotations

import argparse
import re

import pytest

from crossover.options import device, memory_size, whole


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8_000_000_000),
        ("8GiB", 8_589_934_592),
        ("8gib", 8_589_934_592),
        ("800 MB", 800_000_000),
        ("1.5GiB", 1_610_612_736),
        ("0.5kB", 500),
        ("2TiB", 2_199_023_255_552),
        ("4096", 4096),
        ("4096B", 4096),
        ("1152921504606846976", 2**60),
    ],
)
def test_sizes_of_memory_have_units(text: str, size: int) -> None:
    assert memory_size(text) == size


@pytest.mark.parametrize("text", ["8G", "GB", "8iB", "8XB", "-8GB", "0", "0.1B", "8GB8", "", "1e9", "nan", "2000000TB"])
def test_a_size_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=rf"^{re.escape(repr(text))} is not allowed; allowed: .*$"):
        memory_size(text)


def test_a_whole_number_may_be_0() -> None:
    assert [whole("0"), whole("7")] == [0, 7]
    with pytest.raises(argparse.ArgumentTypeError, match=r"^-1 is not allowed; allowed: a whole number of at least 0$"):
        whole("-1")


@pytest.mark.parametrize("name", ["cpu", "cuda", "mps", "xpu", "cpu-1", "cpu-16", "cpu-half"])
def test_a_device_may_be_the_cpu_on_fewer_cores(name: str) -> None:
    assert device(name) == name


@pytest.mark.parametrize("name", ["tpu", "cpu-0", "cpu-01", "cpu-", "cpu-all", "cuda-1", "cpu-half-1", "cpu-1\n"])
def test_another_device_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        device(name)
    assert "allowed: cpu, cuda, mps, xpu; cpu-1, cpu-half" in str(caught.value)
