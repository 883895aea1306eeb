from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossover.measurement.process.assertions import first_assertion_only

ASSERTION = (
    "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: [{},0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)
"""As the CUDA runtime writes it (torch 2.13)."""


@pytest.mark.parametrize(("device", "kept"), [("cuda", 1), ("cpu", 32)])
def test_of_a_kernels_assertions_the_first_is_passed_on(device: str, kept: int, tmp_path: Path) -> None:
    target = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    with first_assertion_only(device, target) as error:
        os.write(error, b"before\n")
        for thread in range(32):
            os.write(error, ASSERTION.format(thread).encode())
        os.write(error, b"error: the line\nno end")
    os.close(target)
    before, *asserted, line, rest = (tmp_path / "log").read_text().splitlines()
    assert (before, line, rest) == ("before", "error: the line", "no end")
    assert asserted == [ASSERTION.format(thread).rstrip() for thread in range(kept)]
