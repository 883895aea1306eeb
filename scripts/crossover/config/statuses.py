"""The statuses and flags of trials in words: what each means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """The description of a status or a flag, and a remedy."""

    meaning: str
    remedy: str
    count: str
    """The end of a sentence such as "3 cells with times that drift"."""

    def __str__(self) -> str:
        return f"{self.meaning}: {self.remedy}"


STATUSES = {
    "ok": Word("measured", "nothing", "measured"),
    "oom": Word(
        "out of memory",
        "this is a result; to get a time, use a smaller size or batch size, or a device with more memory",
        "out of memory",
    ),
    "unsupported": Word(
        "the device, precision or execution does not support a step that runs on the CPU in fp32",
        "this is a result; to get a time, use a device that supports it, or leave it out",
        "not supported by the device",
    ),
    "timeout": Word(
        "the time limit was reached, or the first steps showed that it would be",
        "this is a result; to get a time, raise time_limit_s, or leave the size out",
        "over the time limit",
    ),
    "invalid": Word(
        "the result cannot be used; see the reason column",
        "fix the cause given in the reason column, delete the trial's file in cells/ of the results folder, run again",
        "discarded as faulty",
    ),
}

FLAGS = {
    "drift": Word(
        "the last third of a trial's samples differs from the first by over 25 %; of a cell: in over a third of its "
        "trials, or by significantly more than 5 % on average",
        "let the machine cool down, measure again",
        "with times that drift",
    ),
    "unlike_blocks": Word(
        "mean and median over a trial's blocks differ by over 10 %: its steps differ without a cycle, or are disturbed",
        "stop other work, or raise effort.timed_max_s",
        "with steps that differ",
    ),
    "not_checked": Word(
        "the step's result could not be checked",
        "see the reason column, or raise time_limit_s",
        "whose result was not checked",
    ),
    "incomplete": Word(
        "a pass after the timing did not finish, so its columns are empty",
        "raise time_limit_s, or see the reason column",
        "with a later pass cut short",
    ),
    "diverged": Word(
        "a weight was NaN or infinite when timing ended, which can change the speed of arithmetic",
        "take another precision",
        "with numbers that overflowed",
    ),
    "trials_differ": Word(
        "the standard deviation between trials is significantly above 20 %, or the trials are of two groups that are "
        "over 1.3 times apart",
        "stop other work, add trials",
        "whose times differ much from trial to trial",
    ),
    "above_roof": Word(
        "the step is faster than the measured roofs of its device allow",
        "run again, which probes disturbed roofs once more; for others, delete the folder roofs in the results first",
        "faster than the roofs of their device",
    ),
    "cast": Word(
        "the model was built in a precision other than the measured one",
        "add its precision to `precisions`; see the reason column",
        "of a model built in another precision",
    ),
    "warmup_capped": Word(
        "the warm-up reached its cap before it was long and steady enough",
        "raise effort.warmup_max_s",
        "with a warm-up that was cut short",
    ),
    "throttled": Word(
        "the GPU's clock was below 75 % of its default",
        "check its cooling and power limit",
        "on a GPU that clocked down",
    ),
    "busy_host": Word(
        "other processes used the cores that the trial needs",
        "stop them, or reserve the whole machine",
        "with other programs on their cores",
    ),
    "steal": Word(
        "the hypervisor gave others over 10 % of the CPU time that the host needed",
        "use a machine with dedicated CPUs, or measure again at a quieter time",
        "on a host whose CPU time others took",
    ),
    "shared_gpu": Word(
        "another process had the GPU open, and the driver does not report how much it used",
        "stop it, or use another GPU",
        "on a GPU that others had open",
    ),
    "side_by_side": Word(
        "most of the step waits for the host, which also ran trials on other GPUs",
        "set cluster.side_by_side to false",
        "beside trials on other GPUs of the host",
    ),
    "no_turn": Word(
        "another user's process kept its turn on the host for over 10 minutes, so the trial ran beside it",
        "end the process that column `turn_missed` names",
        "beside another user's process",
    ),
    "quota": Word(
        "a CPU quota held the process back for over 1 % of the time",
        "raise the quota, or lower cpu_threads",
        "held back by a CPU quota",
    ),
}
"""Flags of results with status `ok` that deserve less trust."""

DISTURBED = ("throttled", "busy_host", "steal", "shared_gpu", "side_by_side", "quota")
"""Flags of temporary disturbances, for which `repeat_disturbed` measures a trial again."""
