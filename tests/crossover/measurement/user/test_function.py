"""A user's plain function as a step: its samples, the check of its results, and mistakes in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent, indent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from crossover import Step
from crossover.config.models import Model, read_model
from crossover.config.studies import Cell
from crossover.config.words import AS_WRITTEN
from crossover.errors import InvalidError, UserError
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import CheckResult
from crossover.measurement.trial import is_still_computing
from crossover.measurement.user import function as function_module
from crossover.measurement.user import repeats
from crossover.measurement.user.function import (
    FunctionTask,
    Result,
    UserFunction,
    difference,
    relative_error,
    results_of,
)
from user_errors import error_line

TESTS = Path(__file__).parents[3]
CPU = Arithmetic(torch.device("cpu"))
PLAIN_MODEL = Model("mine.py", "build")


def cell_of(name: str, size: int = 64, file: Path = TESTS / "plain_functions.py", **axes: Any) -> Cell:
    model = read_model(f"{file}:{name}", Path(), "test", axes.pop("axes", ()))
    return Cell(
        "test",
        "model",
        axes.pop("protocol", "resident"),
        axes.pop("batch_size", 1),
        AS_WRITTEN,
        "eager",
        size,
        "cpu",
        model=model,
        **axes,
    )


def task_of(cell: Cell) -> FunctionTask:
    return UserFunction(cell, lambda _message: None).build(cell, {}, CPU)


def written(folder: Path, body: str, head: str = "def build(n, device):") -> Path:
    """Write a file with a function, whose body begins on line 7."""
    file = folder / "mine.py"
    file.write_text(f"import numpy as np\nimport torch\nfrom crossover import Step\n\n\n{head}\n    {body}\n")
    return file


@pytest.mark.parametrize(
    ("name", "size_name", "samples", "sample_name"),
    [
        ("fft", "n", 1, "calls"),
        ("sparse_product", "rows", 1, "calls"),
        ("histogram", "values", 64, "samples"),
        ("euler", "particles", 20 * 64, "updates"),
        ("sorting", "keys", 64, "keys"),
        ("pipeline", "rows", 64, "rows"),
    ],
)
def test_a_function_is_measured_as_it_stands(
    name: str, size_name: str, samples: int, sample_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(call: Callable[[], object]) -> repeats.Spent:
        call()
        return repeats.Spent(1e-3, 1e-3)

    monkeypatch.setattr(function_module, "spent", spent)
    cell = cell_of(name)
    assert cell.model is not None
    assert cell.model.size_name == size_name
    task = task_of(cell)
    task.step()
    assert (task.samples_taken, task.samples, task.sample_name) == (None, samples, sample_name)
    answer = task.check()
    assert answer.wrong is answer.unchecked is None


@pytest.mark.parametrize("head", ["def build(m, k, device):", "def build(device, *, k=3, m):"])
def test_two_sizes_are_passed_by_their_names(head: str, tmp_path: Path) -> None:
    cell = cell_of("build", 7, written(tmp_path, "return lambda: 100 * m + k", head), batch_size=5, axes=("m", "k"))
    said: list[Any] = []
    task = UserFunction(cell, said.append).build(cell, {}, CPU)
    assert task.user_step.run is not None
    assert task.user_step.run() == 705
    assert (task.samples, task.sample_name) == (1, "calls")  # since k is no batch
    assert str(said[-1]["doing"]).endswith("build(m=7, k=5, device='cpu')")


def test_axes_that_the_imported_function_lacks_are_one_line(tmp_path: Path) -> None:
    """A decorator may change the arguments, which are read without running it."""
    head = "def bound(make):\n    return lambda m, device: make(m, 1, device)\n\n@bound\ndef build(m, k, device):"
    cell = cell_of("build", file=written(tmp_path, "return lambda: 1", head), axes=("m", "k"))
    line = error_line(lambda: task_of(cell))
    assert line.endswith("build(m, device) has no argument k, which `axes` names; name two that it has")


def test_a_network_that_a_function_builds_has_the_same_weights_in_each_build(tmp_path: Path) -> None:
    body = "layer = torch.nn.Linear(n, n)\n    return lambda: layer(torch.ones(n)).detach()"
    answer = task_of(cell_of("build", file=written(tmp_path, body))).check()
    assert (answer.wrong, answer.unchecked) == (None, None)


WRONG = "return lambda: np.arange(n) * (2.0 if device == 'cpu' else 2.01)"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (WRONG, "relative difference 0.005, allowed 1e-06"),
        ("return lambda: np.ones(n if device == 'cpu' else n + 1)", "shape [65] and [64]"),
        ("return lambda: [1.0] if device == 'cpu' else [1.0, 2.0]", "2 arrays and 1"),
        ("return lambda: np.arange(n) + (device != 'cpu')", "allowed 0"),
    ],
)
def test_a_result_that_differs_between_devices_is_wrong(function: str, text: str, tmp_path: Path) -> None:
    task = task_of(cell_of("build", file=written(tmp_path, function)))
    task.arithmetic = Arithmetic(torch.device("meta"))  # stands for an accelerator
    wrong = task.check().wrong
    assert wrong is not None
    assert text in wrong


def test_the_tolerance_of_a_step_replaces_the_default(tmp_path: Path) -> None:
    function = WRONG.replace("lambda: ", "Step(tolerance=0.01, run=lambda: ") + ")"
    task = task_of(cell_of("build", file=written(tmp_path, function)))
    task.arithmetic = Arithmetic(torch.device("meta"))  # stands for an accelerator
    answer = task.check()
    assert answer.wrong is None
    assert answer.errors["result"] == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("lambda: None", "returns no numbers or arrays"),
        ("lambda: np.random.default_rng().random(8)", "built twice, the function returns different"),
    ],
)
def test_results_that_cannot_be_compared_are_not_checked(function: str, text: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"return {function}")
    answer = task_of(cell_of("build", file=file)).check()
    assert answer.wrong is None
    assert text in str(answer.unchecked)


@pytest.mark.parametrize(
    ("value", "array", "tolerance"),
    [
        (np.longdouble(0.5), 0.5, 1e-6),
        (torch.tensor([1.5, 2.0], dtype=torch.bfloat16), [1.5, 2.0], 3e-2),
        (torch.tensor([[0.0, 3.0]]).to_sparse(), [[0.0, 3.0]], 1e-3),
        (torch.tensor([[0.0, 3.0]], dtype=torch.bfloat16).to_sparse(), [[0.0, 3.0]], 3e-2),
        (scipy.sparse.csr_array([[0.0, 3.0]]), [[0.0, 3.0]], 1e-6),
        (torch.ones(2, requires_grad=True), [1.0, 1.0], 1e-3),
        (1.5, 1.5, 1e-3),
        (np.arange(2), [0, 1], 0.0),
    ],
)
def test_results_are_compared_with_the_tolerance_of_their_type(value: Any, array: Any, tolerance: float) -> None:
    (result,) = results_of(Step(run=lambda: {"result": (value, "text", object())}), PLAIN_MODEL)
    assert (result.values.to_dense().tolist(), result.tolerance) == (array, tolerance)


SPARSE_KINDS: list[Callable[[Any, Any, int], Any]] = [
    lambda values, places, n: scipy.sparse.csr_array((values, places), shape=(n, n)),
    lambda values, places, n: torch.sparse_coo_tensor(np.array(places), np.outer(values, [1, 1]), (n, n, 2)),
]


@pytest.mark.filterwarnings("ignore:Sparse invariant")
@pytest.mark.parametrize("sparse", SPARSE_KINDS)
def test_sparse_results_are_compared_at_the_places_that_either_stores(sparse: Callable[[Any, Any, int], Any]) -> None:
    """Dense, each of these matrices would take 8 TB."""

    def compared(values: list[float], places: tuple[list[int], list[int]]) -> str | None:
        steps = (([3.0, 4.0], ([0, 7], [5, 10**6 - 1])), (values, places))
        made = [sparse(np.array(values), places, 10**6) for values, places in steps]
        ours, theirs = (results_of(Step(run=lambda result=result: result), PLAIN_MODEL) for result in made)
        return difference(theirs, ours, None)

    assert compared([4.0, 3.0], ([7, 0], [10**6 - 1, 5])) is None
    assert compared([4.0, 2.0, 1.0, 0.0], ([7, 0, 0, 9], [10**6 - 1, 5, 5, 9])) is None  # a sum, and a stored zero
    assert compared([4.0, 3.0], ([7, 0], [10**6 - 1, 6])) == "relative difference 0.85, allowed 1e-06"
    assert compared([4.0, 3.0, 0.5], ([7, 0, 1], [10**6 - 1, 5, 1])) == "relative difference 0.1, allowed 1e-06"
    assert compared([4.0, np.nan], ([7, 0], [10**6 - 1, 5])) == "relative difference inf, allowed 1e-06"


def test_a_result_that_fails_makes_the_row_invalid(tmp_path: Path) -> None:
    file = written(tmp_path, "return Step(run=print, result=lambda: 1 / 0)")
    with pytest.raises(InvalidError, match=r"mine\.py: line 7: its result fails: ZeroDivisionError"):
        task_of(cell_of("build", file=file)).check()


def test_a_step_that_returns_before_its_work_is_done_is_rejected(tmp_path: Path) -> None:
    task = task_of(cell_of("build", file=written(tmp_path, "return lambda: map(abs, [n])")))
    with pytest.raises(UserError, match=r"its step returns an iterator \(map\), whose work is not done yet"):
        task.step()


ONCE = {
    "cache": """
        @functools.cache
        def work(size):
            return fake_work.do(size)
        return lambda: work(n)
    """,
    "set": """
        visited = set()
        def run():
            if n not in visited:
                fake_work.do(n)
            visited.add(n)
            return len(visited)
        return run
    """,
    "default": "return lambda: remembered(n)",
    "later": """
        left = [1, 2, 3]
        return lambda: left and left.pop() and fake_work.do(n)
    """,
}
GLOBALS = """
import functools
import fake_work
def remembered(n, seen=[]):
    return seen or seen.append(fake_work.do(n))
def build(n, device):"""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A module whose function `do(n)` takes n microseconds, `wait(n)` waits; a call of a step takes one more."""
    fake = SimpleNamespace(done_us=0, waited_us=0)

    def do(n: int) -> int:
        fake.done_us += n
        return n

    def spent(call: Callable[[], object]) -> repeats.Spent:
        before_us, before_wait_us = fake.done_us, fake.waited_us
        call()
        worked_s = 1e-6 * (1 + fake.done_us - before_us)
        return repeats.Spent(worked_s, worked_s + 1e-6 * (fake.waited_us - before_wait_us))

    def wait(n: int) -> int:
        fake.waited_us += n
        return n

    fake.wait = wait
    fake.do = do
    monkeypatch.setitem(sys.modules, "fake_work", fake)
    monkeypatch.setattr(function_module, "spent", spent)
    monkeypatch.setattr(repeats, "COMPILERS", ())
    monkeypatch.setattr(repeats, "compiled_graphs", lambda: 0)  # other tests of the process may have compiled
    return fake


def worn(folder: Path, body: str, calls: int = 4) -> FunctionTask:
    """A task after some steps."""
    task = task_of(cell_of("build", 500, written(folder, indent(dedent(body).strip(), 4 * " ").strip(), GLOBALS)))
    for _ in range(calls):
        task.step()
    return task


@pytest.mark.parametrize("body", ONCE.values(), ids=list(ONCE))
def test_work_that_only_the_first_call_does_is_one_line(body: str, work: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"takes 0\.0005 s of CPU time, after many calls 1e-06 s") as raised:
        worn(tmp_path, body).check()
    assert str(raised.value).count("\n") == 0
    assert work.done_us >= 1000


@pytest.mark.parametrize("body", ["return lambda: fake_work.do(n)", "return lambda: sum(range(n))"])
def test_work_that_each_call_does_is_right(body: str, work: SimpleNamespace, tmp_path: Path) -> None:
    assert worn(tmp_path, body).check() == CheckResult()
    assert work.done_us % 500 == 0


@pytest.mark.usefixtures("work")
def test_cpu_time_of_a_step_with_worker_processes_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_module, "active_children", lambda: ["a worker"])
    assert worn(tmp_path, ONCE["set"]).check() == CheckResult()


def test_a_first_call_that_may_compile_is_not_checked(
    work: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "COMPILERS", ("fake_work",))
    answer = worn(tmp_path, ONCE["set"]).check()
    assert work.done_us == 3 * 500
    assert "it compiles itself in the first call, or only that call does the work" in str(answer.unchecked)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("rows = map(float, range(n))\nreturn lambda: sum(rows)", "map"),
        ("data = {'rows': [iter(range(n))]}\nreturn lambda: sum(data['rows'][0])", "range_iterator"),
        ("box = {}\nreturn lambda: sum(box.setdefault('rows', iter(range(n)))) + sum(box.pop('rows'))", ""),
        ("rows = iter(range(10 * n))\nreturn lambda: next(rows) * 0", ""),
        ("return lambda: sum(map(float, range(n)))", ""),
    ],
)
def test_an_iterator_that_is_used_up_is_one_line(body: str, kind: str, work: SimpleNamespace, tmp_path: Path) -> None:
    task = worn(tmp_path, body)
    assert work.done_us == 0
    if kind:
        with pytest.raises(InvalidError, match=rf"its step reads an iterator \({kind}\) that its first call uses up"):
            task.check()
    else:
        assert task.check() == CheckResult()


def test_a_first_call_that_alone_waits_is_not_checked(work: SimpleNamespace, tmp_path: Path) -> None:
    answer = worn(tmp_path, "done = []\nreturn lambda: done or done.append(fake_work.wait(200_000))").check()
    assert work.done_us == 0
    assert "a call on new data takes 0.2 s, after many calls 1e-06 s, and little of it is CPU time" in answer.unchecked


@pytest.mark.parametrize(
    "body",
    [
        "return lambda: fake_work.wait(200_000)",
        "done = []\nreturn lambda: 1 + bool(done or done.append(fake_work.do(19)) or 1)",
        "return lambda: 1 + 0 * fake_work.do(fake_work.noise.pop())",
    ],
)
def test_first_calls_that_differ_little_or_seldom_are_right(body: str, work: SimpleNamespace, tmp_path: Path) -> None:
    work.noise = [0] * 99 + [100, 0, 0, 100]  # of two first calls; a later and a second call stand between them
    assert worn(tmp_path, body, calls=0).check() == CheckResult()


def test_two_first_calls_that_are_slow_by_chance_are_right(work: SimpleNamespace, tmp_path: Path) -> None:
    work.noise = [0] * 99 + [9_900, 0, 0, 9_900]
    body = "return lambda: 1 + 0 * fake_work.do(fake_work.noise.pop())"
    assert worn(tmp_path, body, calls=0).check() == CheckResult()


def test_a_little_work_of_the_first_call_is_confirmed(work: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"takes 0\.00015 s of CPU time, after many calls 1e-06 s"):
        worn(tmp_path, "done = []\nreturn lambda: done or done.append(fake_work.do(149))").check()
    assert work.done_us == 149 * (1 + 2 + repeats.CONFIRMATIONS)


def one_thread(work: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `threadpool_limits`, `woken(n)` takes no time, as the waking of threads; else it takes that of `do(n)`."""

    @contextmanager
    def limits(threads: int) -> Iterator[None]:
        assert threads == 1
        work.woken = lambda _n: 0
        yield
        work.woken = work.do

    work.woken = work.do
    monkeypatch.setattr(function_module, "threadpool_limits", limits)


FIRST_WAKES = "done = []\nreturn lambda: 1 + 0 * bool(done or done.append(fake_work.woken(9_000)))"


def test_threads_that_the_first_call_wakes_are_none_of_its_work(
    work: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_thread(work, monkeypatch)
    for later in ("", " + 0 * fake_work.do(2_000)"):  # over 10 times, and over 3
        task = worn(tmp_path, FIRST_WAKES + later)
        assert task.check() == CheckResult()


def test_work_of_the_first_call_on_one_thread_as_well_is_none_of_waking(
    work: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_thread(work, monkeypatch)
    answer = worn(tmp_path, FIRST_WAKES.replace("woken", "do") + " + 0 * fake_work.do(1_000)").check()
    assert "perhaps its first call leaves less work to the later ones" in str(answer.unchecked)


@pytest.mark.parametrize(
    ("first_s", "later_s", "invalid", "unchecked"),
    [
        ([0.1, 0.11], [1e-6, 2e-6], True, False),
        ([1e-4, 3e-2], [2e-5, 1e-5], False, False),  # 10 times, not more
        ([4e-5], [1e-6], False, False),  # the first call of any code is slower
        ([9e-3], [1.5e-3], False, True),
        ([2e-3], [1e-3], False, False),
        ([1e-3], [2e-3], False, False),
    ],
)
def test_the_ratio_of_the_least_times_decides(
    first_s: list[float], later_s: list[float], invalid: bool, unchecked: bool
) -> None:
    firsts, laters = ([repeats.Spent(cpu_s, cpu_s) for cpu_s in times_s] for times_s in (first_s, later_s))
    wrong, doubt = repeats.verdict(firsts, laters, may_compile=False)
    assert (wrong is not None, doubt is not None) == (invalid, unchecked)


@pytest.mark.parametrize(
    ("first_s", "later_s", "unchecked"),
    [
        ([(0.2, 0.0), (0.3, 0.0)], [(1e-4, 0.0), (1.0, 0.0)], True),
        ([(0.2, 0.0), (1e-3, 0.0)], [(1e-4, 0.0)], False),  # one of two was delayed
        ([(0.2, 0.0)], [(0.1, 0.0)], False),
        ([(0.2, 0.19)], [(1e-4, 0.0)], True),  # 0.01 s at least
        ([(0.2, 0.3)], [(1e-4, 0.0)], False),  # more threads than one waited for a core
        ([(0.04, 0.0)], [(0.035, 0.0348)], False),
    ],
)
def test_waiting_is_judged_by_the_least_wall_clock_time(
    first_s: list[tuple[float, float]], later_s: list[tuple[float, float]], unchecked: bool
) -> None:
    firsts, laters = ([repeats.Spent(1e-6, *both_s) for both_s in times_s] for times_s in (first_s, later_s))
    wrong, doubt = repeats.verdict(firsts, laters, may_compile=False)
    assert (wrong, doubt is not None) == (None, unchecked)


def test_a_call_is_timed_by_both_clocks() -> None:
    cpu_ns, wall_ns = iter([5, 8]), iter([100, 150])
    queued_ns = iter([7, 27])  # other processes used the core for 20 ns
    took = repeats.spent(lambda: None, cpu_ns.__next__, wall_ns.__next__, queued_ns.__next__)
    assert took == pytest.approx((3e-9, 50e-9, 20e-9))


@pytest.mark.parametrize(("busy_s", "waits_s"), [(0.0, 0.01), (0.095, 0.1), (9.0, 0.5)])
def test_threads_that_spin_after_the_build_are_no_work_of_the_first_call(busy_s: float, waits_s: float) -> None:
    """Two threads spin until `busy_s`."""
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    repeats.wait_for_threads(lambda: int(2e9 * min(now_s, busy_s)), sleep)
    assert now_s == pytest.approx(waits_s, abs=0.011)


def test_a_function_with_state_is_compared_from_its_first_step(tmp_path: Path) -> None:
    body = """state = np.zeros(1)
    def run():
        state[:] += 0.1 * (1 - state)
        return state.copy()
    return run"""
    task = task_of(cell_of("build", file=written(tmp_path, body)))
    for _ in range(500):
        task.step()
    task.arithmetic = Arithmetic(torch.device("meta"))
    answer = task.check()
    assert (answer.errors, answer.wrong) == ({"result": 0.0}, None)
    assert "(its second call: relative difference 0.9, allowed 1e-06)" in str(answer.unchecked)


SEARCH = """
    def run():
        left, found = [0], 0
        while left:
            node = left.pop()
            if not {seen}:
                {see}
                found += 1
                left += [2 * node + 1] * (2 * node + 1 < n)
        return found
    return run"""
"""A search from node 0 over the nodes 1, 3, 7, ... below n."""

CHANGING = {
    "closure": ("visited = set()" + SEARCH.format(seen="node in visited", see="visited.add(node)"), ""),
    "array": (SEARCH.format(seen="visited[node]", see="visited[node] = True"), "visited = np.zeros(64, bool)"),
    "attribute": (
        SEARCH.format(seen="node in Graph.visited", see="Graph.visited.add(node)"),
        "class Graph:\n    visited = set()",
    ),
    "object": (
        SEARCH.format(seen="node in graph.visited", see="graph.visited.add(node)"),
        "from types import SimpleNamespace\ngraph = SimpleNamespace(visited=set())",
    ),
    "global": (
        "def run():\n        global visited\n        first, visited = not visited, True\n        return 6 * first"
        "\n    return run",
        "visited = False",
    ),
    "buffer": (
        "out = torch.zeros(2)\n    return lambda: out.add_(1)",
        "",
    ),
    "generator": ("random = np.random.default_rng(0)\n    return lambda: random.random(3)", ""),
}


@pytest.mark.parametrize(("body", "before"), CHANGING.values(), ids=list(CHANGING))
@pytest.mark.usefixtures("work")
def test_a_step_with_other_results_after_its_first_call_is_not_checked(body: str, before: str, tmp_path: Path) -> None:
    task = task_of(cell_of("build", file=written(tmp_path, body, f"{before}\ndef build(n, device):")))
    for _ in range(3):
        task.step()
    answer = task.check()
    assert answer.wrong is None
    assert "after its first call it returns other results (its second call: relative difference" in answer.unchecked
    assert "so the time may be of other work; let each call start from the same data" in answer.unchecked
    assert "\n" not in answer.unchecked


LATE = """def run():
        if left: left.pop()
        return n * bool(left)
    return run"""


@pytest.mark.parametrize(("body", "before"), [(LATE, "left = [1, 2, 3, 4]"), ("left = [1, 2, 3, 4]\n    " + LATE, "")])
@pytest.mark.usefixtures("work")
def test_a_step_with_other_results_after_many_calls_is_not_checked(body: str, before: str, tmp_path: Path) -> None:
    task = task_of(cell_of("build", file=written(tmp_path, body, f"{before}\ndef build(n, device):")))
    for _ in range(5):
        task.step()
    assert "(a call after many: relative difference 1, allowed 0)" in str(task.check().unchecked)


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("return lambda: torch.rand(8)", ""),
        ("return lambda: np.random.rand(8) + torch.rand(8).numpy()", ""),
        ("return lambda: data.sum()", "data = torch.rand(8)"),  # other data in each import
        ("return lambda: torch.add(data, 1, out=out)", "data, out = torch.ones(8), torch.zeros(8)"),
    ],
)
@pytest.mark.usefixtures("work")
def test_equal_results_from_equal_seeds_are_right(body: str, before: str, tmp_path: Path) -> None:
    task = task_of(cell_of("build", file=written(tmp_path, body, f"{before}\ndef build(n, device):")))
    for _ in range(3):
        task.step()
    assert task.check() == CheckResult()


def test_nan_and_infinity_agree_only_with_themselves() -> None:
    def error(*arrays: list[float]) -> float:
        return relative_error(*(Result(torch.tensor(array), 0.0) for array in arrays))

    assert error([1.0, np.nan, np.inf], [1.0, np.nan, np.inf]) == 0.0
    assert error([1.0, np.nan, np.inf], [1.0, 2.0, np.inf]) == np.inf
    assert error([3.0, 4.5], [3.0, 4.0]) == pytest.approx(0.1)


def test_equal_results_are_compared_without_copies_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(function_module, "on_same_places")
    assert relative_error(Result(torch.ones(3), 0.0), Result(torch.ones(3), 0.0)) == 0.0
    with pytest.raises(NameError):
        relative_error(Result(torch.ones(3), 0.0), Result(torch.zeros(3), 0.0))


def test_a_step_waits_for_results_computed_in_the_background(tmp_path: Path) -> None:
    class Later:
        waits = 0

        def block_until_ready(self) -> None:
            Later.waits += 1

    file = written(tmp_path, "return lambda: None")
    task = task_of(cell_of("build", file=file))
    task.user_step = Step(run=lambda: {"a": Later(), "b": 1})
    for _ in range(3):
        task.step()
    assert Later.waits == 3


def test_axes_reach_a_function_by_name(tmp_path: Path) -> None:
    body = "return Step(run=print, samples=7, unit=f'{n} {device} {protocol} {batch_size} {variant}')"
    file = written(tmp_path, body, "def build(n, device, *, protocol, batch_size, variant='torch'):")
    assert task_of(cell_of("build", 5, file, batch_size=3)).sample_name == "5 cpu resident 3 torch"
    cell = cell_of("build", 5, file, batch_size=3, protocol="from_host", variant="numpy")
    assert task_of(cell).sample_name == "5 cpu from_host 3 numpy"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("return 1", "returns an int; allowed: a function without arguments"),
        ("return torch.nn.Linear(n, n)", "remove the argument device"),
        ("return Step(run=print, samples=lambda: n / 0)", "count of its samples fails"),
        ("return Step(run=print, tolerance=-1)", "an int as tolerance; allowed: a number of at least 0"),
        ("return np.ones(n)[device]", "mine.py: line 7: build(64, device='cpu') fails"),
        ("raise SystemExit(1)", "must not end the program"),
    ],
)
def test_a_mistake_is_one_line(function: str, message: str, tmp_path: Path) -> None:
    assert message in error_line(lambda: task_of(cell_of("build", file=written(tmp_path, function))))


def test_arguments_that_are_not_passed_are_one_line(tmp_path: Path) -> None:
    file = written(tmp_path, "return print", "def build(n, m, k, device):")
    message = r"mine\.py: line 6: .* needs m, k, which Crossover does not pass; allowed: build\(size, device\)"
    with pytest.raises(UserError, match=message):
        read_model(f"{file}:build", Path(), "test")


def test_a_step_that_fails_names_the_users_line(tmp_path: Path) -> None:
    file = written(tmp_path, "def run():\n        return [][n]\n    return run")
    with pytest.raises(UserError, match=r"mine\.py: line 8: its step fails: IndexError"):
        task_of(cell_of("build", file=file)).step()


@pytest.mark.parametrize(("busy_s", "works"), [(0.05, True), (0.02, False), (0.0, False)])
def test_a_process_that_still_computes_is_recognised(busy_s: float, works: bool) -> None:
    now_ns = 0

    def sleep(seconds: float) -> None:
        nonlocal now_ns
        now_ns += int(busy_s / 0.05 * seconds * 1e9)

    assert is_still_computing(lambda: now_ns, sleep) is works


def test_step_can_be_imported_without_torch() -> None:
    code = "import sys; from crossover import Step; Step(run=print); print('torch' in sys.modules)"
    folder = TESTS.parent / "scripts"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(folder)})
    assert done.stdout.strip() == "False", done.stderr
