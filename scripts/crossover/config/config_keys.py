"""The keys of the config as pydantic models: allowed values, defaults and descriptions.

Those of the numbers in `effort` and `largest_batch` are in studies.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, field
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from crossover.config.key_types import (
    CONTROL,
    KEYS,
    Count,
    Device,
    Flag,
    Matching,
    Minutes,
    Mode,
    NodeClassName,
    OneOrSeveral,
    PartOf,
    PresetName,
    Price,
    Protocol,
    Seconds,
    Seed,
    Several,
    SizeName,
    SlurmName,
    Text,
    Threads,
    Trials,
    problem,
)
from crossover.config.models import DEFAULT_BATCH_SIZE, DEFAULT_BATCH_SIZES, DEFAULT_SIZES, FORMS, MODES
from crossover.config.studies import PRESETS, BatchSearch, Effort, Refinement
from crossover.config.study import AXES, DATA, Axes, Data, Study, XAxis
from crossover.text import listed


@plain_dataclass(frozen=True)
class EffortOfRun(Effort):
    """Numbers that differ from those of a preset."""

    preset: PresetName = field(
        default="default",
        metadata={"description": "Preset for the numbers that are not given."},
    )
    refinement: Annotated[Mapping[str, Any], PartOf(Refinement)] = field(
        default_factory=dict,
        metadata={"description": "Additional measurements that narrow crossovers down."},
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Disc:
    points: Count = Field(default=1000, description="Number of points.")
    seed: Seed = Field(default=0, description="Seed of the generator.")


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Digits:
    seed: Seed = Field(default=0, description="Seed of the row order.")


def _is_file(path: str) -> str:
    if not Path(path).is_file():
        raise problem(f"{path} does not exist; give the path of a CSV file")
    return path


def _is_folder(path: str) -> str:
    if not Path(path).is_dir():
        raise problem(f"{path} is not a folder; give the folder with MNIST's files")
    return path


DataPath = Annotated[str, Matching(rf"(?=.*\S)[^{CONTROL}]+", "a path of at most 250 characters", 250)]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class HiggsFiles:
    signal: Annotated[DataPath, AfterValidator(_is_file)] = Field(
        description="Path of the signal file (ggH125_ZZ4lep in the lesson)."
    )
    background: Annotated[DataPath, AfterValidator(_is_file)] = Field(
        description="Path of the background file (llll in the lesson)."
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Higgs:
    rows: Count = Field(default=469_000, description="Number of generated rows.")
    seed: Seed = Field(default=492, description="Seed of the generator, or of the split of the real files.")
    csv: HiggsFiles | None = Field(default=None, description="The real files, or null to generate the data.")


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Mnist:
    rows: Count = Field(default=60_000, description="Number of generated rows, made from scikit-learn's 1797 digits.")
    seed: Seed = Field(default=0, description="Seed of the generator.")
    folder: Annotated[DataPath, AfterValidator(_is_folder)] | None = Field(
        default=None,
        description="Folder of MNIST's train-images-idx3-ubyte and train-labels-idx1-ubyte, which may be compressed "
        "(.gz); null to generate the data.",
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Datasets:
    disc: Disc = Field(
        default_factory=Disc,
        description="Points in the unit square, labelled by whether they lie in a disc around the origin.",
    )
    digits: Digits = Field(
        default_factory=Digits,
        description="1797 real images of handwritten digits, 8 x 8 pixels, which scikit-learn ships.",
    )
    higgs: Higgs = Field(
        default_factory=Higgs,
        description="Transverse momenta of two leptons, standardised. Generated unless `csv` names the real files.",
    )
    mnist: Mnist = Field(
        default_factory=Mnist,
        description="Images of handwritten digits, 28 x 28 pixels. Generated unless `folder` holds the real files.",
    )


class Prices(BaseModel):
    """Keys of `prices`; other keys than `currency` name machines."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, defer_build=True)
    __pydantic_extra__: dict[str, Price | None]

    currency: Text | None = Field(
        default=None, description="Currency of the prices, shown in the report; null for none."
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class NodeClass:
    devices: Several[Device] | None = Field(
        default=None, description="Devices to measure on these nodes; null for the run's devices."
    )
    slurm_partition: SlurmName = Field(default="", description="Slurm partition of these nodes, for CPU and GPU cells.")
    slurm_account: SlurmName = Field(default="", description="Slurm account to charge.")
    gpu_model: SlurmName = Field(
        default="",
        description="GPU type that a GPU cell requests, as the cluster names it. A CPU cell requests no GPU, so "
        "select its nodes by partition or constraint.",
    )
    constraint: Annotated[
        str, Matching(r"[\w.,&|()*\[\]-]+", "names of letters, digits and . _ -, joined by , & | ( ) [ ] *")
    ] = Field(default="", description="Features that a node must have, in Slurm's syntax.")
    qos: SlurmName = Field(default="", description="Slurm quality of service of the jobs.")
    cores: Threads = Field(
        default=1,
        description='CPUs of one of these nodes, as Slurm counts them (`sinfo --format "%P %c"`; these may be hardware '
        "threads). A CPU cell requests them all, and may end with an error if its node has more. By default, the "
        "number that Slurm reports for the profile's partition.",
    )


NodeClasses = Annotated[dict[NodeClassName, Annotated[Mapping[str, Any], PartOf(NodeClass)]], Field(min_length=1)]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Cluster:
    classes: NodeClasses | None = Field(
        default=None,
        description="Classes of a cluster's nodes, by name, each with the resources that its jobs request. A cell is "
        "measured on each class that has its device. Null if all nodes are the same.",
    )
    several_hosts: Flag = Field(
        default=False,
        description="Whether rows may come from several hosts. These must have the same CPU and, for each device, the "
        "same hardware and software. Always allowed on a cluster.",
    )
    side_by_side: Flag = Field(
        default=True,
        description="Whether cells on several GPUs of a machine run at once; `false` measures them one at a time. On a "
        "cluster, the profile decides instead which jobs share a node.",
    )
    check_devices: Flag = Field(
        default=True,
        description="Whether a device that this machine lacks is an error. Set to `false` to plan or report the "
        "measurements of another machine.",
    )


StudyName = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9_-]+|(.*/)?[A-Za-z0-9_-]+\.yaml",
        "a name of letters, digits, _ and -, or a path that ends in .yaml",
        1000,
    ),
]
ResultsPath = Annotated[
    str,
    Matching(
        r"[\w/.][\w /.+,=@-]*",
        "a path of letters, digits, spaces and . _ - + , = @ / (~ is not expanded)",
        200,
    ),
]
ReferenceName = Annotated[
    str,
    Matching(
        r"(?!(auto|here|none)$)[A-Za-z0-9][A-Za-z0-9._-]*",
        "a name of letters, digits, '.', '_' and '-', but not auto, here or none",
        100,
    ),
]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class ConfigKeys:
    """Keys of config/config.yaml and of files given with --configfile."""

    studies: OneOrSeveral[StudyName] = Field(
        default=("disc_depth", "hsf_width", "efficientnet_latency"),
        description="Studies to run: names of files in config/studies/, or paths of your own, such as my_study.yaml.",
    )
    overrides: dict[StudyName, dict[str, Any]] = Field(
        default_factory=dict, description="Keys of a study that replace those in its file, by its name in `studies`."
    )
    model: Text | None = Field(
        default=None, description=f"A model of your own, which is then the only study: {FORMS}; null for none."
    )
    mode: Mode | None = Field(
        default=None, description=f"What a step of `model` does; null for `{MODES[0]}`, or what the study says."
    )
    sizes: OneOrSeveral[Count | SizeName] | None = Field(
        default=None,
        description="Sizes of `model`, as numbers or names, or of the only study. Null takes SIZES of the model's "
        f"file, or else {listed([str(size) for size in DEFAULT_SIZES])}. A model without an argument for its size has "
        "a single size.",
    )
    batch_sizes: OneOrSeveral[Count] | None = Field(
        default=None,
        description=f"Samples in a step of `model` or of the only study. Null takes {DEFAULT_BATCH_SIZE}; or "
        f"{listed([str(size) for size in DEFAULT_BATCH_SIZES])}, if the batch size is the model's only argument.",
    )
    axes: Axes | None = Field(default=None, description=AXES)
    protocols: OneOrSeveral[Protocol] | None = Field(
        default=None,
        description="What a step of `model` or of the only study includes, as in a study; null for `resident`, or what "
        "the study says.",
    )
    steps_per_run: Count | None = Field(
        default=None,
        description="Number of steps in a whole run of `model` or of the only study, for answers that include "
        "start-up; null for none, or what the study says.",
    )
    x_axis: XAxis | None = Field(
        default=None,
        description="The x axis of the crossovers of `model` or of the only study. For a model, null takes the batch "
        "size if there is one size and several batch sizes, otherwise the size (parameters if sizes are names).",
    )
    data: Data | None = Field(default=None, description=DATA)
    devices: Literal["auto"] | OneOrSeveral[Device] = Field(
        default="auto",
        description="Devices to measure. `auto` takes the CPU and this machine's accelerator. On a cluster, it takes "
        "the CPU, and CUDA if Slurm knows a node with a GPU. `cuda-2` is two GPUs of one host that train a model "
        "together; `cpu-2x1` does the same with two processes of one core each.",
    )
    reference: Text | Several[Text] = Field(
        default="auto",
        description="References (machines measured elsewhere) to compare this machine with, by name or folder. `auto` "
        "takes those in config/reference/ if the run measures no accelerator; `none` takes none.",
    )
    effort: PresetName | Annotated[Mapping[str, Any], PartOf(EffortOfRun)] = Field(
        default="default",
        description="How long a trial warms up and measures, and how precisely crossovers are narrowed down. A "
        f"preset ({', '.join(PRESETS)}), or a mapping of the numbers that differ from the preset given as its key "
        "`preset`.",
    )
    trials: Trials | None = Field(
        default=None,
        description="Number of trials of each cell, each in its own process, in interleaved rounds. In a study of "
        "crossovers, cells on which no crossover depends may get fewer (see `first_trials`). Null takes the preset's "
        f"({', '.join(f'{name} {preset.trials}' for name, preset in PRESETS.items())}).",
    )
    minutes: Minutes | None = Field(
        default=None,
        description="Time that the run should take, in minutes; null for no limit. The first grid is measured in any "
        "case. Then refinement adds trials where a crossover's interval is widest relative to `target_width`, until "
        "the time is used up or all are as narrow as that. Trainings and searches come on top.",
    )
    seed: Seed = Field(
        default=0,
        description="Seed of weights, data order and the order of cells within a round; trial t uses seed + t.",
    )
    results: ResultsPath = Field(default="results", description="Folder for everything that a run writes.")
    title: Text | None = Field(default=None, description="Heading of the report; null for the usual one.")
    cpu_threads: Literal["auto"] | Threads = Field(
        default="auto",
        description="Threads of torch in a CPU trial; `auto` takes all physical cores that the job may use, "
        "regardless of --cores.",
    )
    time_limit_s: Seconds = Field(
        default=300.0,
        description="Time limit of a trial, a training or a try of a search, in seconds. A job ends earlier if its "
        "first steps show that it would reach the limit.",
    )
    repeat_disturbed: Annotated[int, Field(strict=True, ge=0, le=5)] = Field(
        default=1,
        description="Maximum number of times that a disturbed trial is measured again at the end of a run. Other "
        "programs on its cores or a GPU that clocked down, for example, disturb a trial. The least disturbed row is "
        "used; all stay in the results folder.",
    )
    datasets: Datasets = Field(default_factory=Datasets, description="How the datasets are made.")
    name: ReferenceName = Field(
        default="mine", description="Name for this machine in the reference that `snakemake export_reference` writes."
    )
    prices: Annotated[Mapping[str, Any], PartOf(Prices)] | None = Field(
        default=None,
        description="Price per hour of whole machines, for crossovers and a ranking by cost; null for none. Keys are "
        "`cpu`, for a machine without an accelerator; `cuda`, `mps` or `xpu`, for one with one accelerator of this "
        "kind; `here`, for this machine where its device has no price; names of references; and `currency`.",
    )
    largest_batch: BatchSearch = Field(
        default_factory=BatchSearch,
        description="Search for the largest batch that fits, by `snakemake largest_batches` and for studies with "
        "`largest_batch`.",
    )
    cluster: Cluster = Field(default_factory=Cluster, description="Jobs on several machines.")


@plain_dataclass(frozen=True)
class Configuration:
    """The checked config: its keys, and what follows from them."""

    keys: ConfigKeys
    """The keys, with defaults and the preset's numbers."""
    studies: tuple[Study, ...]
    devices: tuple[str, ...] | None
    """None for `auto`."""
    devices_from: str
    """Name of the layer that sets the devices, for messages."""
    effort: Effort
    refinement: Refinement
    trials: int
    trials_given: bool
    """Whether `trials` are the user's rather than the preset's."""

    @property
    def results(self) -> str:
        return os.path.normpath(self.keys.results)

    @property
    def complete(self) -> dict[str, Any]:
        """All keys and values of the config, including defaults."""
        return asdict(self.keys)

    @property
    def datasets(self) -> dict[str, dict[str, Any]]:
        return asdict(self.keys.datasets)
