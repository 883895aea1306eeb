"""Decide whether to use the GPU, from the thresholds.json of a Crossover run.

To use this file in a program, copy it there; it needs only the standard library:

from thresholds import read_thresholds, should_use_gpu

thresholds = read_thresholds("thresholds.json")
wins = should_use_gpu(thresholds, "hsf_width", 2000, protocol="resident", default=False)
device = "cuda" if wins else "cpu"
wins = should_use_gpu(thresholds, "size_and_batch", size=8, batch_size=100, default=False)
wins = should_use_gpu(thresholds, m=256, k=64, default=False)  # of the only study, with axes={m: [...], k: [...]}

For C, `python thresholds.py thresholds.json > thresholds.h` writes a function for each series.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from keyword import iskeyword
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

VERSION = 5
GPU_AXES = ("device", "gpu")
WORD_AXES = ("protocol", "variant", "precision", "execution")
"""Axes on which a value that the study lacks raises an error; on the other axes, it gives the default."""
POINT = ("size", "batch_size")
TOLERANCE = 1e-12
"""So that rounding does not leave a gap between two regions."""
AXES = ("machine", "size", "batch_size", "cpu", *WORD_AXES, *GPU_AXES)
KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("machine", "cpu", *WORD_AXES, *GPU_AXES, "unit", "torch_version"), (str, NoneType)),
    **dict.fromkeys((*POINT, "smallest", "largest"), (int, float, NoneType)),
    **dict.fromkeys(("gpu_measured_elsewhere", "single_trial"), (bool,)),
    **{"study": (str,), "trials": (int,), "lost": (list,), "ranges": (list,)},
}
"""The types of an entry's values."""

HARDWARE = ("cpu", "physical_cores", "gpu", "torch_version", "gpu_driver_version")

OPTIONS = ("default", "gpu_measured_elsewhere", "single_trial", "beyond_measured")
RESERVED = {*OPTIONS, *HARDWARE, *AXES} - {*POINT}
"""Arguments of `should_use_gpu` and `gpu_if`, which cannot be those of a function's sizes."""

Threshold = Mapping[str, Any]
"""A series of a study: its crossover, speed-ups, the ranges in which a device is faster, caveats and hardware.

If it has `triangles`, it is about sizes and batch sizes together: these are the regions in which a device is faster.
`arguments` are the names of both, those of a function whose study has `axes`.
"""


def read_thresholds(path: str | PathLike[str], **hardware: str | int) -> list[Threshold]:
    """Read the thresholds of a run; raises ValueError for a damaged file, or one of another kind or version.

    Without `hardware`, it accepts a file of any machine. With it, of HARDWARE, it returns only what was measured on it,
    and also raises ValueError for a file without such thresholds: `read_thresholds(path,
    gpu=torch.cuda.get_device_name(), torch_version=torch.__version__)`. Warns of thresholds with which `should_use_gpu`
    returns its default everywhere.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"{path}: no such file; copy thresholds.json from the results folder") from None
    except ValueError:
        raise ValueError(f"{path}: not JSON; copy thresholds.json from the results folder again") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ValueError(f"{path}: not thresholds of version {VERSION}; copy thresholds.py from the run's Crossover")
    thresholds = content.get("thresholds")
    if not isinstance(thresholds, list) or not all(map(_is_whole, thresholds)):
        raise ValueError(f"{path}: thresholds are incomplete; copy thresholds.json from the results folder again")
    if unknown := [name for name in hardware if name not in HARDWARE]:
        raise TypeError(f"{unknown[0]!r} is no hardware or version of a file; allowed: {', '.join(HARDWARE)}")
    for name, value in hardware.items():
        measured = sorted({repr(series.get(name)) for series in thresholds})
        thresholds = [series for series in thresholds if series.get(name) == value]
        if not thresholds:
            raise ValueError(
                f"{path}: measured with {name} {', '.join(measured) or 'unknown'}, not {value!r}; measure here, which "
                "takes five minutes: crossover calibrate FILE.py:FUNCTION --minutes 5"
            )
    if reason := _why_nothing_is_decided(thresholds):
        warnings.warn(f"{path}: should_use_gpu returns its default everywhere: {reason}", stacklevel=2)
    return thresholds


def _is_whole(series: Any) -> bool:
    """Whether an entry has all keys, its regions all numbers and no place in common, and its triangles an area."""
    try:
        if any(type(series[key]) not in kinds for key, kinds in KINDS.items()):
            return False
        regions = regions_of(series)
        if not all(len(region) == (7 if is_plane(series) else 3) for region in regions):
            return False
        numbers = all(_is_finite(end) and end > 0 for region in regions for end in region[:-1])
        if not (numbers and all(map(_is_finite, series["lost"])) and _has_names(series)):
            return False
        if is_plane(series):
            return all(map(_has_area, regions)) and _has_one_side_at_corners(regions) and _has_rule(series)
        ends = [end for region in regions for end in region[:-1]]
        return ends == sorted(ends)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        return False


def _is_finite(number: Any) -> bool:
    return type(number) in (int, float) and math.isfinite(number)


Place = tuple[float, float]


def _corners(numbers: Sequence[float]) -> list[Place]:
    """The places, on logarithms, of sizes and batch sizes in turn."""
    logs = [*map(math.log, numbers)]
    return [*zip(logs[::2], logs[1::2], strict=True)]


def _turn(start: Place, end: Place, place: Place) -> float:
    """Twice the area of a triangle, with the sign of the side of the edge on which the place lies."""
    return (end[0] - start[0]) * (place[1] - start[1]) - (end[1] - start[1]) * (place[0] - start[0])


def _has_area(triangle: Sequence[float]) -> bool:
    return abs(_turn(*_corners(triangle[:6]))) > TOLERANCE


def _has_one_side_at_corners(triangles: Sequence[Sequence[float]]) -> bool:
    sides = {(place, side) for *numbers, side in triangles for place in _corners(numbers)}
    return len(sides) == len({place for place, _ in sides})


def _has_names(series: Threshold) -> bool:
    """Whether both variables have names that a function's arguments may have."""
    first, second = names = series.get("arguments", POINT)
    return first != second and all(
        name.isidentifier() and not iskeyword(name) and name not in RESERVED for name in names
    )


def _has_rule(plane: Threshold) -> bool:
    """Whether the rule, if any, is whole."""
    if (rule := plane.get("rule")) is None:
        return True
    _c_rule(rule["rule"], *POINT)
    exponents = [rule["rule"][f"{axis}_exponent"] for axis in ("size", "batch")]
    rows = rule["rule"]["by_batch"] or [(1, rule["rule"]["least"])]
    ends = [end for batch, least in rows for end in (batch, least) if end is not None]
    numbers = [rule["wrong"], rule["points"], rule["worst"], *exponents, *ends]
    is_text = isinstance(rule["text"], str) and isinstance(rule["of"], str)
    return is_text and all(map(_is_finite, numbers))


def _why_nothing_is_decided(thresholds: Sequence[Threshold]) -> str | None:
    """Why the thresholds give no answer without further options, and what to do; None if they give one."""
    with_gpu = [series for series in thresholds if series["device"] is not None]
    if not thresholds:
        return "the run compared no devices over sizes; measure a study with several sizes or batch sizes"
    if not with_gpu:
        return "no GPU was measured; run the study on a machine with one"
    with_gpu = [{**series, "ranges": regions_of(series)} for series in with_gpu]
    if all(series["smallest"] is None and not series["ranges"] for series in with_gpu):
        return "no size has a result of both GPU and CPU; run the study with devices=[cpu,cuda]"
    options = [
        [option for option in ("gpu_measured_elsewhere", "single_trial") if series[option]]
        for series in with_gpu
        if series["ranges"]
    ]
    if not options:
        return "no size has a significant difference; measure more trials or other sizes"
    if fewest := min(options, key=len):
        return f"it answers only with {' and '.join(f'{option}=True' for option in fewest)}"
    return None


def should_use_gpu(
    thresholds: Sequence[Threshold],
    study: str | None = None,
    x: float | None = None,
    /,
    *,
    default: bool | None = None,
    gpu_measured_elsewhere: bool = False,
    single_trial: bool = False,
    beyond_measured: bool = False,
    **axes: Any,
) -> bool | None:
    """Return True if the GPU is faster at `x`, False if the CPU is, and `default` where the run gives no answer.

    `study` may be left out if all thresholds are of one. `x` is a value on the x axis of the study: a size, a number of
    parameters or a batch size. Without `x`, the answer is for `size` and `batch_size` together, or the arguments that a
    study names in `axes`, from a study over both. The run gives an answer where one device is significantly faster. The
    answer is for the hardware that was measured, whichever machine the program runs on; pass `gpu` or `cpu` to get the
    default for other hardware. Further answers:

    - with `gpu_measured_elsewhere`, for GPUs measured on another machine instead of this run's
    - with `single_trial`, from single trials, where a device was at least twice as fast
    - with `beyond_measured`, beyond the measured range of `x`: the answer at the nearest measured point, unless
      the GPU failed between that point and `x`; not for two variables

    `axes` select a series of the study, such as batch_size=512 or gpu="NVIDIA H200"; a size, batch size, machine or
    device that was not measured gives the default. Raises ValueError for an unknown study or axis, for a protocol,
    variant, precision or execution that the study does not have, and if several series with a GPU are left. Raises
    TypeError if `x` is not a number.
    """
    study = _study_in(thresholds, study)
    names = _names_of(thresholds, study)
    given_as: dict[str, str] = {}
    for name in axes:
        if given_as.setdefault(names.get(name, name), name) != name:
            raise TypeError(f"{given_as[names[name]]} and {name} are one variable; allowed: one of them")
    axes = {axis: axes[name] for axis, name in given_as.items()}
    if unknown := [axis for axis in axes if axis not in AXES]:
        allowed = ", ".join(dict.fromkeys([*names, *AXES]))
        raise ValueError(f"{unknown[0]!r} is not an axis of a series; allowed: {allowed}")
    of_axis = {axis: name for name, axis in names.items()}
    if x is None and not axes.keys() >= {*POINT}:
        both = " and ".join(f"{of_axis[axis]}=" for axis in POINT)
        raise TypeError(f"x is missing; allowed: a number, or {both} together")
    point = () if x is not None else tuple(_number(axes.pop(axis), given_as[axis]) for axis in POINT)
    x = None if x is None else _number(x, "x")
    if not thresholds:
        raise ValueError(
            "no thresholds are given: the run compared no devices over sizes; run Snakemake with a study that does, "
            "and read the thresholds.json beside its report"
        )
    of_study = [series for series in thresholds if series["study"] == study and is_plane(series) == (x is None)]
    if not of_study:
        others = sorted({series["study"] for series in thresholds if is_plane(series) == (x is None)})
        of = "for sizes and batch sizes together" if x is None else "along one axis"
        raise ValueError(f"study {study!r} has no thresholds {of}; allowed: {others}")
    for axis in WORD_AXES:
        if axis in axes and axes[axis] not in [series[axis] for series in of_study]:
            raise ValueError(
                f"no series of study {study!r} has {axis}={axes[axis]!r}; allowed: {_values(of_study, [axis])[axis]}"
            )
    picked = [series for series in of_study if all(_agrees(series, axis, value) for axis, value in axes.items())]
    with_gpu = [
        series
        for series in picked
        if series["device"] is not None and series["gpu_measured_elsewhere"] == gpu_measured_elsewhere
    ]
    if not with_gpu:
        return default
    if len(with_gpu) > 1:
        choices = [
            f"{of_axis.get(axis, axis)} ({', '.join(values)})"
            for axis, values in _values(with_gpu, AXES).items()
            if len(values) > 1
        ]
        given = f" with {', '.join(f'{axis}={value!r}' for axis, value in axes.items())}" if axes else ""
        named = f"name one value of {', and of '.join(choices)}"
        raise ValueError(f"{len(with_gpu)} series of study {study!r}{given} have a GPU; {named}")
    (series,) = with_gpu
    if series["single_trial"] and not single_trial:
        return default
    if x is None:
        return _faster_at(series, point, default)
    if beyond_measured and series["smallest"] is not None:
        if any(series["smallest"] > lost >= x or series["largest"] < lost <= x for lost in series["lost"]):
            return default
        x = min(max(x, series["smallest"]), series["largest"])
    for sizes in series["ranges"]:
        if sizes["from"] <= x <= sizes["until"]:
            return bool(sizes["faster"] == "gpu")
    return default


def _study_in(thresholds: Sequence[Threshold], study: str | None) -> str:
    """The study, or without a name the only one; raises ValueError for an unknown one, and TypeError without one."""
    studies = sorted({series["study"] for series in thresholds})
    if not isinstance(study, str | None):
        raise TypeError(f"study is {study!r}; allowed: {studies}, or None for the only one")
    if study is None and len(studies) > 1:
        raise TypeError(f"study is missing; allowed: {studies}")
    if study is None:
        return studies[0] if studies else ""
    if studies and study not in studies:
        raise ValueError(f"study {study!r} has no thresholds; allowed: {studies}")
    return study


def _names_of(thresholds: Sequence[Threshold], study: str) -> dict[str, str]:
    """The names of a study's two variables as arguments, each with the one of POINT that it stands for."""
    names = dict(zip(POINT, POINT, strict=True))
    for series in thresholds:
        if series["study"] == study:
            names |= zip(series.get("arguments", POINT), POINT, strict=True)
    return names


def is_plane(series: Threshold) -> bool:
    """True for an entry on sizes and batch sizes together."""
    return "triangles" in series


def _faster_at(plane: Threshold, point: Sequence[float], default: bool | None) -> bool | None:
    """The answer in a certified region, whose edges belong to it."""
    if not all(0 < value < math.inf for value in point):
        return default
    (place,) = _corners(point)
    for name, triangles in plane["triangles"].items():
        for triangle in triangles:
            corners = _corners(triangle)
            turns = [_turn(*edge, place) for edge in zip(corners, [*corners[1:], corners[0]], strict=True)]
            if min(turns) >= -TOLERANCE or max(turns) <= TOLERANCE:
                return bool(name == "gpu")
    return default


def gpu_if(
    path: str | PathLike[str], study: str | None = None, x: Any = None, /, *, default: int = 0, **options: Any
) -> Callable[[Any], int]:
    """A function for a Snakemake rule's `resources: gpu=`: 1 where the GPU is faster, 0 where the CPU is.

    It gives `default` where the run gives no answer. `x` and the two variables are numbers, names of the rule's
    wildcards, or functions of its wildcards. The hardware on which the jobs run goes to `read_thresholds`, which
    refuses a file of another, and the other arguments to `should_use_gpu`.
    """
    if type(default) is not int or default < 0:
        raise ValueError(f"gpu_if: default is {default!r}; allowed: a number of GPUs, such as 0 or 1")
    thresholds = read_thresholds(path, **{name: options.pop(name) for name in HARDWARE if name in options})
    names = _names_of(thresholds, _study_in(thresholds, study))
    any_point = dict.fromkeys(options.keys() & names.keys(), 1.0)
    should_use_gpu(thresholds, study, None if x is None else 1.0, **{**options, **any_point})  # for its errors

    def gpus(wildcards: Any) -> int:
        def value(given: Any) -> Any:
            if callable(given):
                return given(wildcards)
            if not isinstance(given, str):
                return given
            text: Any = getattr(wildcards, given, None)
            with suppress(TypeError, ValueError):
                return float(text)
            raise ValueError(f"gpu_if: wildcard {given} is {text!r}; allowed: a wildcard of the rule, with a number")

        point = {name: value(options[name]) for name in any_point}
        wins = should_use_gpu(thresholds, study, None if x is None else value(x), **{**options, **point})
        return default if wins is None else int(wins)

    return gpus


C_HEADER = """\
/* Made from {path}. Each function returns 1 where the GPU is faster, 0 where the CPU is, and -1 where the measurement
   gives no answer. Measured on {hardware}.
   Compile without -ffast-math, with which NaN would get an answer. Headers included together need files of different
   names, which are part of their functions' names. */
#ifndef CROSSOVER_{digest}_H
#define CROSSOVER_{digest}_H
#include <math.h>
#ifndef CROSSOVER_REGIONS
#define CROSSOVER_REGIONS

static inline int in_crossover_ranges(double x, const double (*ranges)[3], int count) {{
    for (int i = 0; i < count; i++)
        if (ranges[i][0] <= x && x <= ranges[i][1]) return ranges[i][2] > 0;
    return -1;
}}

static inline int in_crossover_plane(double size, double batch_size, const double (*triangles)[7], int count) {{
    if (!(size > 0 && batch_size > 0 && size < INFINITY && batch_size < INFINITY)) return -1;
    double x = log(size), y = log(batch_size);
    for (int i = 0; i < count; i++) {{
        double least = INFINITY, most = -INFINITY;
        for (int a = 0; a < 3; a++) {{
            int b = (a + 1) % 3;
            double ax = log(triangles[i][2 * a]), ay = log(triangles[i][2 * a + 1]);
            double bx = log(triangles[i][2 * b]), by = log(triangles[i][2 * b + 1]);
            double turn = (bx - ax) * (y - ay) - (by - ay) * (x - ax);
            least = fmin(least, turn);
            most = fmax(most, turn);
        }}
        if (least >= -{tolerance} || most <= {tolerance}) return triangles[i][6] > 0;
    }}
    return -1;
}}
#endif
{functions}
#endif
"""

C_FUNCTION = """
/* {about} */
static inline int {name}({arguments}) {{
    static const double regions[][{columns}] = {{{regions}}};
    return {call}, regions, {count});
}}
"""


C_RULE = """
/* {about}, by a rule that also answers elsewhere: GPU {text}; wrong at {wrong} of {points} points with a significant
   difference{cost}. */
static inline int {name}_rule({arguments}) {{
    if (!({positive})) return -1;
    {body}
}}
"""


def c_header(thresholds: Sequence[Threshold], path: str) -> str:
    """A C header with a function for each series whose GPU was measured here and that has a certified region.

    A plane's rule is a second function. The name of a file other than thresholds.json is part of its functions' names.
    """
    functions: list[str] = []
    of_file = [stem] if (stem := Path(path).stem) != "thresholds" else []
    names: Counter[str] = Counter()
    for series in thresholds:
        regions = regions_of(series)
        if series["device"] is None or series["gpu_measured_elsewhere"] or series["single_trial"] or not regions:
            continue
        varied = [axis for axis in AXES if len(_values(thresholds, [axis])[axis]) > 1 and series[axis] is not None]
        words = [*of_file, series["study"], *(str(series[axis]) for axis in varied)]
        words += ["plane"] if is_plane(series) else []
        name = "crossover_" + re.sub(r"\W+", "_", "_".join(words), flags=re.ASCII).strip("_").lower()
        names[name] += 1
        name += f"_{names[name]}" if names[name] > 1 else ""
        arguments: Sequence[str] = series.get("arguments", POINT) if is_plane(series) else ("x",)
        named = {axis: argument for argument, axis in _names_of(thresholds, series["study"]).items()}
        of = ", ".join([series["study"], *(f"{named.get(axis, axis)} {series[axis]}" for axis in varied)])
        second = f" and {arguments[1].replace('_', ' ')}" if is_plane(series) else ""
        about = f"{of}: {series['unit']}{second}, {series['trials']} trials or more"
        arguments = [f"arg_{argument}" for argument in arguments]  # unlike any keyword or macro
        function = C_FUNCTION.format(
            about=_in_comment(about),
            name=name,
            arguments=_declared(arguments),
            columns=len(regions[0]),
            regions=", ".join("{" + ", ".join(repr(float(number)) for number in region) + "}" for region in regions),
            call=f"in_crossover_{'plane' if is_plane(series) else 'ranges'}({', '.join(arguments)}",
            count=len(regions),
        )
        functions.append(function)
        if rule := series.get("rule"):
            names_of_rule = ["arg_parameters" if rule["of"] == "parameters" else arguments[0], arguments[1]]
            functions.append(
                C_RULE.format(
                    about=_in_comment(about),
                    text=_in_comment(rule["text"]),
                    **{key: rule[key] for key in ("wrong", "points")},
                    cost=f", at most {rule['worst']:.3g}x slower there" if rule["wrong"] else "",
                    name=name,
                    arguments=_declared(names_of_rule),
                    positive=" && ".join(f"{argument} > 0 && {argument} < INFINITY" for argument in names_of_rule),
                    body=_c_rule(rule["rule"], *names_of_rule),
                )
            )
    on = {
        f"{' and '.join(str(series[side]) for side in ('cpu', 'gpu') if series[side])}, torch {series['torch_version']}"
        for series in thresholds
    }
    head = {"path": _in_comment(path), "hardware": _in_comment("; ".join(sorted(on)))}
    digest = hashlib.sha256("".join(functions).encode()).hexdigest()[:12].upper()
    return C_HEADER.format(**head, digest=digest, functions="".join(functions), tolerance=TOLERANCE)


def _in_comment(text: Any) -> str:
    """Text that neither begins nor ends a comment of C."""
    return str(text).replace("*", "x")


def _declared(arguments: Sequence[str]) -> str:
    return ", ".join(f"double {argument}" for argument in arguments)


def _c_rule(rule: Mapping[str, Any], first: str, second: str) -> str:
    """The body of a function with the fields of `crossover.compare.rules.Rule`."""

    def at_least(least: float | None, score: str) -> str:
        return "0" if least is None else f"{score} >= {math.log(least)!r}" if least else "1"

    if rule["by_batch"] is None:
        score = f"{rule['size_exponent']!r} * log({first}) + {rule['batch_exponent']!r} * log({second})"
        return f"return {at_least(rule['least'], score)};"
    table = sorted(rule["by_batch"])
    tests = [
        f"if (log({second}) <= {(math.log(batch) + math.log(following)) / 2!r}) "
        f"return {at_least(least, f'log({first})')};"
        for (batch, least), (following, _) in pairwise(table)
    ]
    return "\n    ".join([*tests, f"return {at_least(table[-1][1], f'log({first})')};"])


def regions_of(series: Threshold) -> list[list[float]]:
    """The regions in which a device is faster: the ends or corners of each, then 1 for the GPU or 0 for the CPU."""
    if is_plane(series):
        both = series["triangles"]
        return [[*corners, int(name == "gpu")] for name in ("gpu", "cpu") for corners in both[name]]
    return [[sizes["from"], sizes["until"], ("cpu", "gpu").index(sizes["faster"])] for sizes in series["ranges"]]


def _number(value: Any, name: str) -> float:
    if not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError):
            try:
                return float(value)
            except OverflowError:
                return math.inf
    raise TypeError(f"{name} is {value!r}; allowed: a number, such as a size or a batch size")


def _agrees(series: Threshold, axis: str, value: Any) -> bool:
    """True if a series has this value; a series without a GPU matches every GPU, since its answer is the default."""
    return bool(series[axis] == value) or (axis in GPU_AXES and series["device"] is None)


def _values(thresholds: Sequence[Threshold], axes: Sequence[str]) -> dict[str, list[str]]:
    """The values of each axis as text, numbers by size."""
    values = {axis: {series[axis] for series in thresholds} for axis in axes}
    in_order = {
        axis: sorted(found, key=lambda one: (one is not None, isinstance(one, str), one))
        for axis, found in values.items()
    }
    return {axis: [*map(str, found)] for axis, found in in_order.items()}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python thresholds.py thresholds.json > thresholds.h")
    try:
        sys.stdout.write(c_header(read_thresholds(sys.argv[1]), sys.argv[1]))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
