"""Time two sides' steps apart and in turns, and compare the log ratios: their bias, and their spread over processes.

The sides are a CPU and a GPU or, with `--baseline cuda`, the same step twice, as two versions of a program would be.
Designs: `apart`, a process for each side; `turns`, both sides in one process; `token`, a process for each side, which
hand over a token after each turn. A turn is blocks of 10 ms; `left_out` blocks at its beginning are not used. Each
design is run with OpenMP threads that spin and, as `passive`, that sleep. Bias is the difference from `apart` of the
mean log ratio, baseline over contender, with its 95 % interval; `spread` is the standard deviation over processes.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.config.models import read_model
from crossover.config.options import new_parser
from crossover.config.studies import Cell
from crossover.machine.threads import physical_cores, usable_cpus
from crossover.measurement.clock.timing import Stopwatch, time_block, without_garbage_collection
from crossover.measurement.process.child import copy_heap, resize_thread_pools
from crossover.measurement.process.messages import wait_readable
from crossover.measurement.process.server import preload
from crossover.measurement.step.conditions import set_switches
from crossover.measurement.step.devices import open_device
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.workloads import build_task
from crossover.tables.frames import write_csv

MODULE = """
import torch
from torch import nn

def disc(layers, batch_size):
    widths = [2 ** k for k in range(1, layers + 1)]
    hidden = [m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], 2)), torch.randn(batch_size, 2), torch.randint(2, (batch_size,))

def width(n, batch_size):
    net = nn.Sequential(nn.Linear(3, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 2))
    return net, torch.randn(batch_size, 3), torch.randint(2, (batch_size,))

def conv(n, batch_size):
    net = nn.Sequential(nn.Conv2d(1, n, 3), nn.ReLU(), nn.Conv2d(n, n, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(n * 144, 10))
    return net, torch.randn(batch_size, 1, 28, 28), torch.randint(10, (batch_size,))

def block(n, batch_size):
    layer = nn.TransformerEncoderLayer(n, 4, 4 * n, dropout=0.0, batch_first=True)
    return layer, torch.randn(batch_size, 32, n), torch.randn(batch_size, 32, n)
"""
CELLS = [
    *(f"disc:{layers}:{execution}" for execution in ("eager", "cuda-graph") for layers in (6, 9, 10)),
    *(f"width:{n}:eager" for n in (100, 1000, 2000)),
    *("conv:8:eager", "block:128:eager"),
]
DESIGNS = ["apart:100", *(f"{design}:{turn_ms}" for design in ("turns", "token") for turn_ms in (25, 50, 100, 200))]
BATCH_SIZES = {"disc": 100, "width": 100, "conv": 16, "block": 1}
SIDES = ("baseline", "contender")
TIMED_S, BLOCK_S, LIMIT_S = 0.4, 0.01, 60
WARM_S = {"cpu": 0.25, "cuda": 0.5}


class Side:
    """One device's step, built and warm."""

    def __init__(self, cell: str, device: str, folder: Path) -> None:
        name, size, execution = cell.split(":")
        execution = execution if device == "cuda" else "eager"
        model = replace(read_model(f"{folder / 'turns.py'}:{name}", folder, "check"), mode="train")
        target = open_device(device)
        spec = Cell("check", "model", "resident", BATCH_SIZES[name], "fp32", execution, int(size), device, model=model)
        ready = prepare(build_task(spec, {}, arithmetic_of("fp32", target.device)), execution)
        self.watch = Stopwatch(synchronise=target.synchronise, around=ready.around)
        time_block(ready.step, 3, self.watch)
        self.step, self.steps = ready.timed_step(), 1
        end_s = time.perf_counter() + WARM_S[device]
        while time.perf_counter() < end_s:
            step_s = self.block_s()
            self.steps = max(1, math.ceil(BLOCK_S / step_s))

    def block_s(self) -> float:
        return time_block(self.step, self.steps, self.watch).wall_s / self.steps

    def turn_s(self, seconds: float) -> list[float]:
        """Seconds per step of the blocks of one turn."""
        blocks_s: list[float] = []
        while sum(blocks_s) * self.steps < seconds:
            blocks_s.append(self.block_s())
        return blocks_s


def forked(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start `work` in a fork; the result waits for it, and is what it returned."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.close(reading)
            copy_heap()
            threads = physical_cores(usable_cpus())
            resize_thread_pools(threads)  # after the fork, which keeps one thread only
            set_switches("fp32", threads)
            with os.fdopen(writing, "w") as file:
                json.dump(work(), file)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)

    def result() -> Any:
        with os.fdopen(reading) as file:
            text = file.read()
        os.waitpid(child, 0)
        return json.loads(text) if text else None

    return result


def run_design(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The turns of both sides, in which each block is seconds per step."""
    design, cell, turn_s = order["design"], order["cell"], order["turn_ms"] / 1000
    turns, sides = max(2, round(TIMED_S / turn_s)), SIDES[:: -1 if order["reversed"] else 1]

    def warm(side: str) -> Side:
        return Side(cell, order[side], folder)

    def apart(name: str) -> list[list[float]]:
        side = warm(name)
        with without_garbage_collection():
            return [side.turn_s(turn_s) for _ in range(turns)]

    def in_turns() -> dict[str, list[list[float]]]:
        both = {side: warm(side) for side in sides}
        times: dict[str, list[list[float]]] = {side: [] for side in sides}
        with without_garbage_collection():
            for _ in range(turns):
                for side in sides:
                    times[side].append(both[side].turn_s(turn_s))
        return times

    if design == "turns":
        result: dict[str, Any] = forked(in_turns)()
        return result
    if design == "apart":
        return {side: forked(lambda side=side: apart(side))() for side in sides}
    pipes = [os.pipe(), os.pipe()]

    def with_token(number: int, name: str) -> list[list[float]]:
        take, give = pipes[number][0], pipes[1 - number][1]
        os.close(pipes[number][1])
        os.close(pipes[1 - number][0])

        def await_token() -> None:
            if not os.read(take, 1):
                raise EOFError("the other side has ended")

        await_token()
        side, times = warm(name), []
        os.write(give, b"t")
        with without_garbage_collection():
            for _ in range(turns):
                await_token()
                times.append(side.turn_s(turn_s))
                with suppress(BrokenPipeError):  # the other side may have had its last turn
                    os.write(give, b"t")
        return times

    os.write(pipes[0][1], b"t")
    results = [forked(lambda number=number, side=side: with_token(number, side)) for number, side in enumerate(sides)]
    for pipe in pipes:
        for end in pipe:
            os.close(end)
    return {side: result() for side, result in zip(sides, results, strict=True)}


def serve() -> None:
    """Answer orders, a line of JSON each, with their times; torch is imported once, and no device is opened here."""
    preload([])
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "turns.py").write_text(MODULE)
        for line in sys.stdin:
            print(json.dumps(run_design(json.loads(line), Path(name))), flush=True)


def measured(
    designs: list[str], cells: list[str], waits: list[str], devices: Mapping[str, str], seconds: float
) -> Iterator[dict[str, Any]]:
    """Whole rounds of all combinations, each in random order, for about `seconds`.

    Raises RuntimeError if a process fails, and TimeoutError if one takes more than `LIMIT_S`.
    """
    servers = {
        wait: subprocess.Popen(
            [sys.executable, *sys.argv[:2], "--serve"],
            env=os.environ | ({"OMP_WAIT_POLICY": "passive"} if wait == "passive" else {}),
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True},
        )
        for wait in waits
    }
    end_s, round_ = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        orders = list(product(designs, cells, waits))
        random.Random(round_).shuffle(orders)
        for number, (design, cell, wait) in enumerate(orders):
            kind, turn_ms = design.split(":")
            order = {"design": kind, "turn_ms": int(turn_ms), "cell": cell, **devices}
            order["reversed"] = (round_ + number) % 2
            server = servers[wait]
            assert server.stdin
            assert server.stdout
            print(json.dumps(order), file=server.stdin, flush=True)
            if not wait_readable(server.stdout.fileno(), LIMIT_S):
                raise TimeoutError(f"{order} takes more than {LIMIT_S} s")
            times = json.loads(server.stdout.readline())
            if None in times.values():
                raise RuntimeError(f"a process of {order} failed")
            for side in SIDES:
                facts = {"round": round_, "design": design, "wait": wait, "cell": cell, "side": side}
                yield facts | {"turns_s": times[side]}
        round_ += 1
    for server in servers.values():
        server.stdin.close()
        server.wait()


def log_times(rows: pd.DataFrame, left_out: int) -> pd.DataFrame:
    """Log of the median seconds per step of each process, a column for each side."""

    def median_s(turns_s: list[list[float]]) -> float:
        return math.log(statistics.median(b for turn in turns_s for b in (turn[left_out:] or turn[-1:])))

    table = rows.assign(log_s=[median_s(turns_s) for turns_s in rows["turns_s"]])
    return table.pivot(index=["cell", "wait", "design", "round"], columns="side", values="log_s")


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for left_out in (0, 1, 2):
        times = log_times(rows, left_out)
        ratios = times["baseline"] - times["contender"]
        for (cell, wait, design), group in ratios.groupby(level=["cell", "wait", "design"]):
            base = ratios.xs((cell, wait), level=("cell", "wait"))
            alone = base[base.index.get_level_values("design").str.startswith("apart")]
            both = times.loc[(cell, wait, design)]
            half = 1.96 * math.sqrt(group.var() / len(group) + alone.var() / len(alone))
            shifts = {
                side: both[side].mean() - times.loc[(cell, wait, alone.index[0][0]), side].mean() for side in SIDES
            }
            lines.append(
                {"cell": cell, "wait": wait, "design": design, "left_out": left_out, "n": len(group)}
                | {"ratio": math.exp(group.mean()), "bias": group.mean() - alone.mean(), "bias_half": half}
                | {f"{side}_bias": shift for side, shift in shifts.items()}
                | {"spread": group.std()}
                | {"spread_share": group.std() / alone.std(), "correlation": both["baseline"].corr(both["contender"])}
            )
    return pd.DataFrame(lines)


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--designs", nargs="+", default=DESIGNS, help="DESIGN:TURN_MS")
    parser.add_argument("--cells", nargs="+", default=CELLS, help="NAME:SIZE:EXECUTION")
    parser.add_argument("--waits", nargs="+", default=["spinning", "passive"])
    parser.add_argument("--baseline", default="cpu", help="device; if it is the contender's, no bias is expected")
    parser.add_argument("--contender", default="cuda", help="device")
    parser.add_argument("--seconds", default=3600.0, type=float, help="rounds begin until then")
    parser.add_argument("--output", type=Path, default=Path("results/checks/turns.jsonl"), help="rows to write")
    parser.add_argument("--serve", action="store_true", help="for this script's own use")
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", encoding="utf-8") as file:
        devices = {side: vars(options)[side] for side in SIDES}
        for row in measured(options.designs, options.cells, options.waits, devices, options.seconds):
            print(json.dumps(row), file=file, flush=True)
    table = table_of(pd.read_json(options.output, lines=True))
    write_csv(table, options.output.with_suffix(".csv"))
    print(table.to_string(index=False, float_format="%.3f"))
