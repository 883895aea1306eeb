"""When does the GPU pay off? The library that the scripts of the workflow share."""

__version__ = "0.1.0"
