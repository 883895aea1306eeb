"""When does the GPU pay off? The library shared by the workflow's scripts."""

from crossover.step import Step as Step

__version__ = "0.2.0"
