"""A made-up NVML, for what reads GPUs on a machine that has none."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

Answers = dict[str, Any]


class FakeNvml:
    """pynvml with the answers of made-up GPUs, by UUID; the UUID is also the handle.

    A GPU's answers are by the function's name, or by the name and its arguments: `nvmlDeviceGetClock(1, 2)`. What has
    no answer is not supported, as on many a real GPU. Whoever asks outside of init and shutdown is told off.
    """

    def __init__(self, gpus: dict[str, Answers], installed: bool = True) -> None:
        self.gpus = gpus
        self.installed = installed
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.installed:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return list(self.gpus)[index]

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid not in self.gpus:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        known = self.gpus[handle].get("fields", {})
        return [
            SimpleNamespace(
                nvmlReturn=pynvml.NVML_SUCCESS if field in known else pynvml.NVML_ERROR_NOT_SUPPORTED,
                value=SimpleNamespace(ullVal=known.get(field, 999)),
            )
            for field in fields
        ]

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        return real if not name.startswith("nvmlDevice") else self._answering(name)

    def _answering(self, name: str) -> Callable[..., Any]:
        def answer(handle: str, *arguments: int, **_: Any) -> Any:
            assert self.opened == 1, "NVML is not open"
            answers = self.gpus[handle]
            for key in (f"{name}({', '.join(map(str, arguments))})", name):
                if key in answers:
                    return answers[key]
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

        return answer


@pytest.fixture
def fake_nvml() -> Callable[..., FakeNvml]:
    """Builds an NVML of made-up GPUs."""
    return FakeNvml
