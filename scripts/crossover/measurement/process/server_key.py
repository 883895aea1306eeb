"""The key of a trial server, by which a trial finds one that fits; imported by a trial's parent too."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from crossover.home import PACKAGE
from crossover.machine.environment import loaded_variables
from crossover.machine.kernel import read_kernel


def server_key(environment: Mapping[str, str]) -> str:
    """Key of a server: a hash of what a fork inherits and cannot change.

    Crossover's own files are left out, since the server itself notices their changes.
    """
    process = Path("/proc/self")
    facts = {
        "user": os.getuid(),
        "interpreter": [sys.version, sys.prefix],
        "packages": [Path(sysconfig.get_path(name)).stat().st_mtime_ns for name in ("purelib", "platlib")],
        "library": str(PACKAGE),
        "environment": loaded_variables(environment),
        "limits": [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
        "niceness": os.nice(0),
        "cgroup": read_kernel(process / "cgroup"),
        "memory_policy": (read_kernel(process / "numa_maps") or "").split(maxsplit=2)[1:2],
        "namespaces": [
            str(path.readlink())
            for path in sorted((process / "ns").iterdir())
            if path.name in ("mnt", "pid", "user", "net", "ipc")
        ],
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
