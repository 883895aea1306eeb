"""When does the GPU pay off? The library that the scripts of the workflow share."""

from crossover.step import Step as Step

__version__ = "0.2.0"
