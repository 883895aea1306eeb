"""One training's result: its columns with their units.

Measurement and analysis read this module, so it imports neither torch nor pandas.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crossover.config.words import HERE
from crossover.tables.columns import column

SCHEMA_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training of a model and what it predicts. Null means: not known on this machine, or not reached."""

    schema_version: int = field(default=SCHEMA_VERSION, metadata={"doc": "version of these columns", "unit": ""})
    study: str | None = column("study, as its file is named in config/studies/")
    workload: str | None = column("workload, as its module is named")
    variant: str | None = column("what of the workload is switched on")
    protocol: str | None = column("always `resident`: what a step computes does not depend on it")
    batch_size: int | None = column("batch size", "samples")
    precision: str | None = column("arithmetic of the training and of the predictions")
    execution: str | None = column("always `eager`")
    size: int | None = column("position on the workload's size axis")
    machine: str = field(default=HERE, metadata={"doc": "machine, or class of nodes, as it was named", "unit": ""})
    device: str | None = column("kind of device")
    seed: int | None = column("seed of weights and order of rows, drawn on the host for every device")

    size_name: str | None = column("what the size axis counts")
    parameters: int | None = column("trainable parameters of the model")
    epochs: int | None = column("passes over the training part")
    test_share: float | None = column("share of the dataset's rows that is held out")
    status: str | None = column("how the training ended: ok, oom, unsupported, timeout, invalid")
    reason: str | None = column("why, where the status is not ok")

    labels: list[int] | None = column("classes of the rows held out")
    predictions: list[int] | None = column("classes that the trained model predicts for them")
    loss: float | None = column("mean cross entropy of the rows held out", "nat")
    steps: int | None = column("training steps")
    train_s: float | None = column("wall time of all epochs, shuffling included", "s")

    device_name: str | None = column("name of the device that ran")
    device_uuid: str | None = column("UUID of the GPU that ran")
    driver_version: str | None = column("GPU driver")
    cuda_version: str | None = column("CUDA (or HIP) that torch was built for")
    cudnn_version: str | None = column("cuDNN that torch runs")
    hostname: str | None = column("name of the host")
    operating_system: str | None = column("operating system and kernel")
    cpu_model: str | None = column("CPU of the host")
    cpu_capability: str | None = column("instruction set that torch chose")
    physical_cores: int | None = column("physical cores that the process may use")
    threads: int | None = column("threads of torch within an operation, read back")
    backend_settings: str | None = column("torch's switches and threads as read back at the end, JSON")
    isolation: str | None = column("where the training ran: a fork of the trial `server`, a fresh `process`")
    torch_version: str | None = column("version of torch")
    python_version: str | None = column("version of Python")
    crossover_version: str | None = column("version of this workflow")
    code_version: str | None = column("git commit of the code that trained, `-dirty` where changed; null without git")
    code_key: str | None = column("hash of all files that the training imported, and of `packages`")
    packages: str | None = column("versions of Python, torch and the packages that the workload imports, JSON")
    command: str | None = column("command that trains this model again")
