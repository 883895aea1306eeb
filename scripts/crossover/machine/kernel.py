"""What the Linux kernel tells in small files under /proc and /sys; elsewhere, and where it is kept, nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def read_kernel(path: Path) -> str | None:
    """The stripped text of a kernel file; None where it is missing, kept from us, or cannot answer."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # a file may be there and still refuse to be read, as PSI does when it is switched off
        return None


def read_number(path: Path) -> int | None:
    """The whole number in a kernel file; None where there is none."""
    text = read_kernel(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def cpu_control_groups(root: Path = Path("/")) -> Iterator[Path]:
    """Folders of this process's control group and of those above it, for each hierarchy that governs the CPU."""
    return control_groups("cpu", root)


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Folders of this process's control group and of those above it, for each hierarchy with a controller."""
    for line in (read_kernel(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            base = root / "sys/fs/cgroup" / controller
        else:
            continue
        folder = base / group.lstrip("/")
        yield from (level for level in (folder, *folder.parents) if level.is_relative_to(base))
