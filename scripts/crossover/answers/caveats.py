"""What flags and statuses mean, in the words of a reader who has never seen them."""

from __future__ import annotations

CAVEATS = {
    "drift": "with times that drift",
    "unchecked": "whose answer was not checked",
    "incomplete": "with a later pass cut short",
    "diverged": "with numbers that overflowed",
    "trials_differ": "whose times differ much from trial to trial",
    "warmup_capped": "with a warm-up that was cut short",
    "throttled": "on a GPU that clocked down",
    "busy_host": "with other programs on their cores",
    "side_by_side": "beside trials on other GPUs of the host",
    "quota": "held back by a CPU quota",
    "oom": "out of memory",
    "timeout": "over the time limit",
    "unsupported": "not offered by the device",
    "invalid": "discarded as faulty",
}
"""What is to be said of cells and trials with a flag, or with a status that is not ok, behind their number."""


def with_name(name: str) -> str:
    """'with times that drift (drift)'; another word, such as 'missing', says by itself what it means."""
    return f"{CAVEATS[name]} ({name})" if name in CAVEATS else name
