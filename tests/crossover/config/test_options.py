from __future__ import annotations

import argparse
import re

import pytest

from crossover.config import options
from crossover.config.options import memory_size
from crossover.home import ROOT


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8_589_934_592),
        ("1.5GiB", 1_610_612_736),
        ("4096", 4096),
        ("1152921504606846976", 2**60),
    ],
)
def test_an_amount_of_memory_may_have_a_unit(text: str, size: int) -> None:
    assert memory_size(text) == size


@pytest.mark.parametrize("text", ["8G", "GB", "-8GB", "0", "0.1B", "8GB8", "1e9", "2000000TB"])
def test_an_invalid_amount_of_memory_is_one_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=rf"^{re.escape(repr(text))} is not allowed; allowed: .*$"):
        memory_size(text)


def test_the_command_of_a_report_is_that_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert options.report_command("my results") == "python scripts/report_rows.py 'my results'"
    monkeypatch.setattr(options, "IS_INSTALLED", True)
    assert options.report_command("a=x", "b=y") == "crossover report a=x b=y"
