"""Torch's warnings about its internals are hidden; warnings that a user can act on are shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUIET = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from crossover.measurement.process.child import keep_torch_quiet
keep_torch_quiet()
import torch
from torch import nn
"""
INTERNAL = """
nn.LazyLinear(3)
torch.eye(3).to_sparse_csr()
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as profile:
    for _ in range(4):
        torch.ones(3)
        profile.step()
torch.compiler.config.force_disable_caches = True
torch.compile(lambda x: x * 2, backend="eager")(torch.ones(3))
"""
OF_THE_USER = """
nn.MSELoss()(torch.ones(3, 1), torch.ones(3))
torch.cuda.amp.autocast(enabled=False)
warnings.warn("of the user's own", FutureWarning)
"""


def test_only_warnings_that_a_user_can_act_on_are_shown(root: Path) -> None:
    command = [sys.executable, "-c", QUIET + INTERNAL + OF_THE_USER, str(root / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    shown = [line.partition("Warning: ")[2][:50] for line in done.stderr.splitlines() if "Warning: " in line]
    assert shown == [
        "Using a target size (torch.Size([3])) that is diff",
        "`torch.cuda.amp.autocast(args...)` is deprecated. ",
        "of the user's own",
    ]
