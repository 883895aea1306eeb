"""Print what would make numbers measured on this machine worse and what to do about it, one finding per line."""

from __future__ import annotations

import argparse
import sys

import pynvml

from crossover.machine.doctor import examine


def main(arguments: list[str]) -> None:
    """Look at this machine and print the findings."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    print("\n".join(examine(pynvml)) or "nothing found")


if __name__ == "__main__":
    main(sys.argv[1:])
