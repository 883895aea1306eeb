"""Takes a turn on the host as a trial would; `test_turns.py` starts several of these at once.

Arguments: holder, whether `alone` or `beside` others, and `fork` to leave a child behind. It takes its turn once it has
read a line from standard input, ends it with the next one, and writes one line for each event to standard output.
"""

from __future__ import annotations

import os
import sys
import time

from crossover.machine.turns import host_turn


def say(event: str) -> None:
    print(f"{time.monotonic()} {event}", flush=True)


def main(holder: str, how: str, *more: str) -> None:
    say("ready")
    sys.stdin.readline()
    with host_turn(os.environ, alone=how == "alone", holder=holder, tell=say):
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
