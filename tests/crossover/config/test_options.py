from __future__ import annotations

import pytest

from crossover.config import options
from crossover.home import ROOT


def test_the_command_of_a_report_is_that_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert options.report_command("my results") == "python scripts/report_rows.py 'my results'"
    monkeypatch.setattr(options, "IS_INSTALLED", True)
    assert options.report_command("a=x", "b=y") == "crossover report a=x b=y"
