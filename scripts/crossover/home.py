"""Where Crossover's files lie: in a checkout, or in the installed package."""

from pathlib import Path

PACKAGE = Path(__file__).parent
"""The folder of package `crossover`."""

IS_INSTALLED = (PACKAGE / "workflow").is_dir()

ROOT = PACKAGE / "workflow" if IS_INSTALLED else PACKAGE.parents[1]
"""The folder with the Snakefile, rules, scripts, config, envs, profiles and report."""

NAME = "crossover-benchmark"
"""The name of the package for pip."""
