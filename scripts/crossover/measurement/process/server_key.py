"""What a trial server is good for: everything that a fork inherits and could not set for itself.

Two trials may be forked by the same server only if all of it is equal: user, interpreter, installed packages, the
folder of this library, the environment variables that native libraries read when they are loaded, limits, control
group, namespaces and memory policy. The key is a hash of that, so a changed package never meets an old server. Whether
the library's files have changed, the server looks for itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from crossover.machine.code_key import LIBRARY

LOADED_ONCE = (
    "ATEN",
    "CUBLAS",
    "CUDA",
    "CUDNN",
    "DNNL",
    "GLIBC",
    "GOMP",
    "HIP",
    "HSA",
    "KMP",
    "LD_",
    "MALLOC",
    "MKL",
    "NCCL",
    "NUMEXPR",
    "NVIDIA",
    "OMP",
    "ONEDNN",
    "OPENBLAS",
    "PYTHON",
    "PYTORCH",
    "ROC",
    "TORCH",
    "TRITON",
)
"""Prefixes of variables that are read when a library is loaded."""

WITHOUT_TORCH = "without-torch"
"""What the process of a server without torch is told."""

SET_LATER = {"CUDA_VISIBLE_DEVICES"}
"""Read when a device is first used, so a fork can still set it."""


def server_key(environment: Mapping[str, str] = os.environ, torch: bool = True) -> str:
    """The key of a server with torch, or of one without, as 32 hexadecimal digits."""
    facts = {
        "torch": torch,
        "user": os.getuid(),
        "interpreter": [sys.executable, sys.version, sys.prefix],
        "packages": _packages(),
        "library": str(LIBRARY),
        "environment": {
            name: value
            for name, value in sorted(environment.items())
            if name.startswith(LOADED_ONCE) and name not in SET_LATER
        },
        "limits": [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
        "niceness": os.nice(0),
        "kernel": [_kernel_text(name) for name in ("cgroup", "numa_maps")],
        "namespaces": [_link(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "user", "net", "ipc")],
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _packages() -> list[tuple[str, int]]:
    """Installed distributions and when their records were written, from the names of their folders."""
    folders = {
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *os.environ.get("PYTHONPATH", "").split(":"),
    }
    found = []
    for folder in sorted(filter(None, folders)):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        found += [(entry.path, entry.stat().st_mtime_ns) for entry in entries if entry.name.endswith("-info")]
    return sorted(found)


def _kernel_text(name: str) -> str:
    """A file of /proc/self; of the memory map only the policy of its first line."""
    try:
        text = Path("/proc/self", name).read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.split(maxsplit=2)[1] if name == "numa_maps" and text else text


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
