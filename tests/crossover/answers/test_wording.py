from __future__ import annotations

from collections.abc import Sequence

import pytest

from crossover.answers.wording import capitalised, listed, machine_words


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("on the GPU", "On the GPU"), ("“a” is", "“a” is")])
def test_only_the_first_letter_changes(text: str, shown: str) -> None:
    assert capitalised(text) == shown


@pytest.mark.parametrize(("words", "shown"), [((), ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")])
def test_the_last_of_a_list_follows_and(words: Sequence[str], shown: str) -> None:
    assert listed(words) == shown


def test_a_machine_without_a_name_is_not_named() -> None:
    assert [machine_words("on", name) for name in ("h200", "here")] == [" on h200", ""]
