"""One seed for all generators that a workload may draw from: Python's, NumPy's and torch's.

A fork has the state of those of the trial server, so that what is not seeded would be the same in every trial.
"""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed them; NumPy's takes 32 bits."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # the one that is shared, for whoever draws without a generator of their own
    torch.manual_seed(seed)
