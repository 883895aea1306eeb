"""Takes a turn on the host like a trial; `test_turns.py` starts several of these.

Arguments: `alone` or `beside`, and optionally `fork` to leave a child behind. It requests its turn
after reading a line from standard input, ends it after the next line, and writes one line per event to standard output.
"""

from __future__ import annotations

import os
import sys
import time

from crossover.machine.turns import host_turn


def say(event: str) -> None:
    print(f"{time.monotonic()} {event}", flush=True)


def main(how: str, *more: str) -> None:
    say("ready")
    sys.stdin.readline()
    with host_turn(os.environ, alone=how == "alone", tell=say):
        if more:
            if (child := os.fork()) == 0:
                time.sleep(60)
                os._exit(0)
            say(f"child {child}")
        say("begins")
        sys.stdin.readline()
        say("ends")


if __name__ == "__main__":
    main(*sys.argv[1:])
