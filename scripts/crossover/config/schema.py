"""The keys of a config and of a study's file, as pydantic models: what each allows, its default and its meaning.

`json_schema` gives the same as a JSON schema: for editors (config/schema.yaml), the reference pages and messages. The
numbers of `effort`, `refinement`, `largest_batch` and `quality` are fields of dataclasses in studies.py.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_serializer,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from crossover.config.models import FORMS, MODES
from crossover.config.options import memory_size
from crossover.config.studies import (
    LATENCY_STEPS_MAX,
    LATENCY_STEPS_MIN,
    LONGEST_S,
    MOST,
    MOST_EPOCHS,
    MOST_SEED,
    MOST_THREADS,
    MOST_TRIALS,
    PRESETS,
    BatchSearch,
    Effort,
    Quality,
    Refinement,
)
from crossover.config.words import BASELINE, DEVICES, EXECUTIONS, HALF, PLAIN, PRECISIONS, PROTOCOLS

T = TypeVar("T")

LONGEST_TEXT = 2000
"""Most characters of a text."""
CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
"""Characters that XML, and so a page or a figure, cannot hold."""
MOST_SAMPLES = 1_000_000_000_000
MOST_PUBLISHED = 1e15


OUR_ERRORS = ("problem", "not_allowed", "repeated")
"""Types of the errors that this module raises."""


def problem(message: str) -> PydanticCustomError:
    """The error of a value whose message says all: `message` follows the file and the key."""
    return PydanticCustomError("problem", "{message}", {"message": message})


@dataclass(frozen=True)
class OneOf:
    """Annotation of a text that is one of these words."""

    words: Sequence[str]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema([*self.words])


@dataclass(frozen=True)
class Matching:
    """Annotation of a text that matches a pattern as a whole; `title` says in words what does."""

    pattern: str
    title: str
    longest: int = LONGEST_TEXT

    def check(self, text: str) -> str:
        """The text itself; raises PydanticCustomError."""
        if len(text) > self.longest or not re.fullmatch(self.pattern, text):
            raise PydanticCustomError("not_allowed", "{title}", {"title": self.title})
        return text

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, core_schema.str_schema(strict=True))

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "string", "title": self.title}


def _each_once(values: list[T]) -> list[T]:
    if len({(type(value), value) for value in values}) < len(values):
        raise PydanticCustomError("repeated", "a value is repeated")
    return values


def _ascending(ends: list[float]) -> list[float]:
    if ends[0] > ends[1]:
        raise problem(f"[{ends[0]:g}, {ends[1]:g}] is reversed; allowed: lowest, highest")
    return ends


def _without_defaults(rule: dict[str, Any]) -> dict[str, Any]:
    properties = {
        key: {word: value for word, value in part.items() if word != "default"}
        for key, part in rule["properties"].items()
    }
    return {**rule, "properties": properties}


@dataclass(frozen=True)
class PartOf:
    """Annotation of a mapping with some fields of a dataclass, which are checked as its own are."""

    kind: type

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            self.check,
            handler.generate_schema(self.kind),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )

    def check(self, values: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        """The given fields, each checked."""
        checked = handler(values)
        return {name: getattr(checked, name) for name in values}

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return _without_defaults(handler.resolve_ref_schema(handler(schema)))


Set = Annotated[list[T], AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True})]
"""A list that names each value once."""
Several = Annotated[Set[T], Field(min_length=1)]

Text = Annotated[
    str,
    Matching(
        rf"(?=[\s\S]*\S)[^{CONTROL}]+",
        f"a text of 1 to {LONGEST_TEXT} characters, without control characters",
    ),
]
SlurmName = Annotated[str, Matching(r"[\w.:@,+-]+", "a name of letters, digits and . _ : @ , + -")]
NodeClassName = Annotated[str, Matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a name of letters, digits, . _ and -", 100)]
Count = Annotated[int, Field(strict=True, ge=1, le=MOST)]
Seed = Annotated[int, Field(strict=True, ge=0, le=MOST_SEED)]
Trials = Annotated[int, Field(strict=True, ge=1, le=MOST_TRIALS)]
Threads = Annotated[int, Field(strict=True, ge=1, le=MOST_THREADS)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=LONGEST_S)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Price = Annotated[float, Field(strict=True, ge=1e-6, le=MOST)]
Published = Annotated[float, Field(strict=True, gt=0, le=MOST_PUBLISHED)]
Positive = Annotated[float, Field(strict=True, gt=0, le=MOST)]
Range = Annotated[list[Published], Field(min_length=2, max_length=2), AfterValidator(_ascending)]
Flag = Annotated[bool, Field(strict=True)]
Device = Annotated[str, OneOf(DEVICES)]
Protocol = Annotated[str, OneOf(PROTOCOLS)]
Precision = Annotated[str, OneOf(PRECISIONS)]
Execution = Annotated[str, OneOf(EXECUTIONS)]
Mode = Annotated[str, OneOf(MODES)]
PresetName = Annotated[str, OneOf(tuple(PRESETS))]
CoreCount = Annotated[str, OneOf((HALF,))] | Threads


class Keys(BaseModel):
    """A mapping of these keys and no others."""

    # Only a config and a study are built, with all that they hold: each mapping for itself would take twice as long.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)


class GivenKeys(Keys):
    """A mapping that keeps out of its dump what it was not given."""

    @model_serializer(mode="wrap")
    def _given(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if key in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return _without_defaults(handler.resolve_ref_schema(handler(schema)))


class Data(Keys):
    file: Text = Field(description="The path of the file.")
    targets: Text = Field(
        description="The column to predict: texts, true and false or whole numbers are classes, numbered from 0 in "
        "their order."
    )
    inputs: Several[Text] | None = Field(None, description="The columns to predict from, or null.")


DATA = (
    "A table of samples for `model`, which then returns the network alone: a CSV or Parquet file, the column to "
    "predict, and those to predict from (null: all others but an index of the rows)."
)


@dataclass(frozen=True)
class RefinementKeys(Refinement):
    """What a config says of the refinement."""

    pairs: tuple[Annotated[str, OneOf(("device", "precision", "execution"))], ...] = field(
        default=Refinement.pairs,
        metadata={
            "min_length": 1,
            "description": "Which crossovers in time to narrow down: `device`, of each accelerator with the CPU; "
            "`precision`, of fp32 with each other precision on one device; `execution`, of eager with each other "
            "execution on one device.",
        },
    )


@dataclass(frozen=True)
class EffortKeys(Effort):
    """What a config says of the effort."""

    preset: PresetName = field(
        default="default",
        metadata={"description": "Preset for the numbers that are not given; `default` if it is not named."},
    )
    refinement: Annotated[Any, PartOf(RefinementKeys)] = field(
        default_factory=dict,
        metadata={"description": "What is measured beyond the studies' sizes to narrow crossovers down."},
    )


class Disc(Keys):
    points: Count = Field(1000, description="Number of points.")
    seed: Seed = Field(0, description="Seed of the generator.")


class Digits(Keys):
    seed: Seed = Field(0, description="Seed of the order of the rows.")


def _is_file(path: str) -> str:
    if not Path(path).is_file():
        raise problem(f"{path} does not exist; give the path of a CSV file")
    return path


def _is_folder(path: str) -> str:
    if not Path(path).is_dir():
        raise problem(f"{path} is no folder; give the one with MNIST's files")
    return path


DataPath = Annotated[str, Matching(rf"(?=.*\S)[^{CONTROL}]+", "a path of at most 250 characters", 250)]


class HiggsFiles(Keys):
    signal: Annotated[DataPath, AfterValidator(_is_file)] = Field(
        description="Path of the signal file (ggH125_ZZ4lep in the lesson)."
    )
    background: Annotated[DataPath, AfterValidator(_is_file)] = Field(
        description="Path of the background file (llll in the lesson)."
    )
    columns: Annotated[Set[Text], Field(min_length=2, max_length=2)] = Field(
        ["lep_pt_1", "lep_pt_2"], description="Names of the two feature columns."
    )
    test_share: Share = Field(0.33, description="Share of rows held out of the training.")


class Higgs(Keys):
    rows: Count = Field(469_000, description="Generated training rows.")
    positive_share: Share = Field(0.24, description="Generated share of signal rows.")
    seed: Seed = Field(492, description="Seed of the generator, or of the split of the real files.")
    csv: HiggsFiles | None = Field(None, description="The real files, or null to generate the data.")


class Mnist(Keys):
    rows: Count = Field(60_000, description="Generated rows, made of the 1797 digits that scikit-learn ships.")
    seed: Seed = Field(0, description="Seed of the generator.")
    folder: Annotated[DataPath, AfterValidator(_is_folder)] | None = Field(
        None,
        description="Folder of MNIST's train-images-idx3-ubyte and train-labels-idx1-ubyte, compressed (.gz) or not, "
        "or null to generate the data.",
    )


class Datasets(Keys):
    disc: Disc = Field(
        default_factory=Disc, description="Points in the unit square, labelled by a disc around the origin."
    )
    digits: Digits = Field(
        default_factory=Digits,
        description="Images of handwritten digits, 8 x 8 pixels, that scikit-learn ships; 1797 rows of real data.",
    )
    higgs: Higgs = Field(
        default_factory=Higgs,
        description="Two lepton transverse momenta, standardised; generated unless `csv` names the real files.",
    )
    mnist: Mnist = Field(
        default_factory=Mnist,
        description="Images of handwritten digits, 28 x 28 pixels; generated unless `folder` holds the real files.",
    )


class Prices(GivenKeys):
    cpu: Price | None = Field(None, description="Price per hour of a machine without an accelerator.")
    cuda: Price | None = Field(None, description="Price per hour of a machine with one such accelerator.")
    mps: Price | None = Field(None, description="Price per hour of a machine with one such accelerator.")
    xpu: Price | None = Field(None, description="Price per hour of a machine with one such accelerator.")
    currency: Text | None = Field(None, description="Currency of these prices, for the report; null leaves it out.")


def _is_memory_size(size: int | str) -> int | str:
    try:
        memory_size(str(size))
    except ArgumentTypeError as error:
        raise problem(str(error)) from None
    return size


@dataclass(frozen=True)
class BatchSearchKeys(BatchSearch):
    """What a config says of the search for the largest batch."""

    memory_limit: Annotated[Annotated[int, Field(strict=True)] | Text, AfterValidator(_is_memory_size)] | None = field(
        default=None,
        metadata={
            "description": "Memory that a cell may take, in bytes or with a unit (8GB, 8GiB). Null allows 80 % of the "
            "available memory on the CPU, and all memory of other devices."
        },
    )


class NodeClass(GivenKeys):
    devices: Several[Device] | None = Field(None, description="Devices of these nodes to measure; null for the run's.")
    slurm_partition: SlurmName = Field("", description="Slurm partition of these nodes, for CPU and GPU cells.")
    slurm_account: SlurmName = Field("", description="Slurm account that pays for them.")
    gpu_model: SlurmName = Field(
        "",
        description="Type of GPU that a GPU cell asks for, by the cluster's name for it. A CPU cell asks for none, so "
        "choose its nodes by partition or constraint.",
    )
    constraint: Annotated[
        str, Matching(r"[\w.,&|()*\[\]-]+", "names of letters, digits and . _ -, joined by , & | ( ) [ ] *")
    ] = Field("", description="Features that a node must have, in Slurm's spelling.")
    qos: SlurmName = Field("", description="Quality of service, in Slurm's spelling.")
    cores: Threads = Field(
        1,
        description='CPUs of one of these nodes, as Slurm counts them (`sinfo --format "%P %c"`; these may be hardware '
        "threads). A CPU cell takes them all, and ends with an error if its node has more. By default those of the "
        "run's nodes.",
    )


class Cluster(Keys):
    classes: Annotated[dict[NodeClassName, NodeClass], Field(min_length=1)] | None = Field(
        None,
        description="Classes of a cluster's nodes, by name, each with the resources that its jobs ask for. Every cell "
        "is measured on each class. Null if all nodes are alike.",
    )
    several_hosts: Flag = Field(
        False,
        description="Whether rows may come from several hosts with the same CPU and, of one device, the same hardware "
        "and software; on a cluster they always may.",
    )
    side_by_side: Flag = Field(
        True,
        description="Whether cells on several GPUs of a machine run at once. `false` measures them one at a time if "
        "Snakemake runs the jobs itself; on a cluster the profile decides which jobs share a node.",
    )
    check_devices: Flag = Field(
        True,
        description="Whether a device that this machine lacks is an error. `false` plans or reports what another "
        "machine measures.",
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
        "a path of letters, digits, spaces and . _ - + , = @ / (~ for the home folder is not read here)",
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


class ConfigKeys(Keys):
    """Keys of config/config.yaml and of files given with --configfile."""

    studies: Several[StudyName] = Field(
        ["disc_depth", "hsf_width", "efficientnet_latency"],
        description="Studies to run; each is a file in config/studies/, or the path of a file of your own, as "
        "my_study.yaml.",
    )
    model: Text | None = Field(
        None, description=f"A model of your own, which is then the only study: {FORMS}; null for none."
    )
    mode: Mode = Field(MODES[0], description="What a step of `model` does.")
    sizes: Several[Count | Text] | None = Field(
        None,
        description="Sizes of `model`, as numbers or names; null for those that its file states as SIZES, or for 16, "
        "64, 256 and 1024.",
    )
    batch_size: Count = Field(32, description="Samples in a step of `model`.")
    data: Data | None = Field(None, description=DATA)
    devices: Literal["auto"] | Several[Device] = Field(
        "auto",
        description="Devices to measure. `auto` takes the CPU and this machine's accelerator; on a cluster the CPU, "
        "and CUDA if Slurm knows a node with a GPU.",
    )
    reference: Text | Several[Text] = Field(
        "auto",
        description="Machines measured elsewhere to hold this one against: `auto` takes those in config/reference/ "
        "where this machine has no accelerator, `none` takes none; or a name of one, or a folder that export_reference "
        "made, or a list of such.",
    )
    effort: PresetName | Annotated[Any, PartOf(EffortKeys)] = Field(
        "default",
        description="How long a trial warms up and measures, and how closely crossovers are narrowed down. A preset, "
        "or a mapping of single numbers that differ from the preset named by its key `preset`.",
    )
    trials: Trials | None = Field(
        None,
        description="Processes that measure each cell, in interleaved rounds; of a study of crossovers only the cells "
        "that these depend on (see `first_trials`). Null takes the preset's "
        f"({', '.join(f'{name} {preset.trials}' for name, preset in PRESETS.items())}).",
    )
    seed: Seed = Field(
        0,
        description="Seed of weights, data order and the order of cells within a round; trial t uses seed + t.",
    )
    results: ResultsPath = Field("results", description="Folder of everything that a run makes.")
    cpu_threads: Literal["auto"] | Threads = Field(
        "auto",
        description="Threads of torch. `auto` takes the physical cores that the job may use, whatever --cores says.",
    )
    time_limit_s: Seconds = Field(
        300.0,
        description="Seconds after which a trial ends with status `timeout`, or earlier if its first steps show that "
        "it would.",
    )
    repeat_disturbed: Annotated[int, Field(strict=True, ge=0, le=5)] = Field(
        1,
        description="How often trials that were disturbed are measured again at the end of a run, if others used the "
        "cores or the GPU, the GPU clocked down or a quota held the process back. The less disturbed row counts; both "
        "stay in the results folder. 0 measures nothing again.",
    )
    datasets: Datasets = Field(default_factory=Datasets, description="How the datasets are made.")
    name: ReferenceName = Field(
        "mine", description="Name of this machine in the folder that `snakemake export_reference` writes."
    )
    prices: Prices | None = Field(
        None,
        description="Price per hour of the machine that holds each device, for crossovers in money; null for none. The "
        "CPU's price is that of a machine without an accelerator.",
    )
    largest_batch: BatchSearchKeys = Field(
        default_factory=BatchSearchKeys,
        description="Search for the largest batch that fits, by `snakemake largest_batches` and for studies that ask "
        "for it.",
    )
    cluster: Cluster = Field(default_factory=Cluster, description="Jobs on several machines.")


class Axes(GivenKeys):
    protocol: Protocol = Field("", description="What a step includes.")
    batch_size: Count = Field(1, description="Samples in a step.")
    precision: Precision = Field("", description="Arithmetic.")
    execution: Execution = Field("", description="How the step runs.")
    size: Count = Field(1, description="Point on the workload's size axis.")
    variant: Text = Field("", description="Option of the workload.")
    device: Device = Field("", description="Kind of device.")


class Side(Axes):
    metric: Text = Field(
        "",
        description="Numeric column of measurements.parquet (of a list the mean counts), samples_per_s or run_time_s.",
    )


WHERE = "Values of the axes that both sides share, as many as it takes to name one cell (for a crossover, one line)."
RANGE = "Lowest and highest claimed value."
SIDE = "Values of the axes of this side, and `metric` if each side has its own."


class CrossoverKeys(GivenKeys):
    range: Range = Field(description=RANGE)
    where: Axes = Field(default_factory=Axes, description=WHERE)


class SpeedupKeys(GivenKeys):
    slow: Axes = Field(description="Values of the axes of this side.")
    fast: Axes = Field(description="Values of the axes of this side.")
    where: Axes = Field(default_factory=Axes, description=WHERE)
    range: Range = Field(description=RANGE)


class RatioKeys(GivenKeys):
    metric: Text = Field("", description="The metric of both sides.")
    of: Side = Field(description=SIDE)
    over: Side = Field(description=SIDE)
    where: Axes = Field(default_factory=Axes, description=WHERE)


class RatioRangeKeys(RatioKeys):
    range: Range = Field(description=RANGE)


class RatioLimitKeys(RatioKeys):
    limit: Positive = Field(description="The ratio lies below this value.")


class TrainedWhere(GivenKeys):
    precision: Precision = Field("", description="Arithmetic of the training.")
    device: Device = Field("", description="Kind of device.")


class SameQualityKeys(GivenKeys):
    metric: Annotated[str, OneOf(("accuracy", "macro_f1", "weighted_f1"))] = Field(
        description="Measure of quality on the rows held out."
    )
    within: Positive = Field(description="Largest difference that counts as the same.")
    study: Text | None = Field(None, description="Study that trains the models; null for the claim's own.")
    where: TrainedWhere = Field(
        default_factory=TrainedWhere, description="The only device or precision to look at; by default all."
    )


class ClaimKeys(GivenKeys):
    statement: Text = Field(description="The statement, in a clause.")
    source: Text | None = Field(
        None,
        description="Author, title and date, if it is not `published.source`; `ours` for a statement of our own.",
    )
    published: Annotated[float, Field(strict=True, ge=0, le=MOST_PUBLISHED)] | Text | None = Field(
        None, description="The source's value, if it differs from what is tested; or null."
    )
    crossover_between: CrossoverKeys | None = Field(
        None, description="The accelerator begins to beat the CPU between two points of the study's x axis."
    )
    speedup_between: SpeedupKeys | None = Field(
        None, description="The ratio of two cells' step times, `slow` over `fast`, lies between two values."
    )
    ratio_between: RatioRangeKeys | None = Field(
        None, description="A ratio of two cells, or of two columns of one cell, lies between two values."
    )
    ratio_below: RatioLimitKeys | None = Field(
        None, description="A ratio of two cells, or of two columns of one cell, lies below a value."
    )
    same_quality: SameQualityKeys | None = Field(
        None,
        description="The trained model is as good on every device and in every precision as on the CPU in fp32.",
    )


@dataclass(frozen=True)
class QualityKeys(Quality):
    """What a study says of its trainings."""

    classes: Annotated[Set[Text], Field(min_length=2)] | None = field(
        default=None, metadata={"description": "Names of the classes, in order; null for their numbers."}
    )


ASKED_METRICS = ("step_time_s", "device_used_bytes", "peak_allocated_bytes", "relative_error", "max_relative_error")


class AsksKeys(GivenKeys):
    of: Axes = Field(description="Values of the axes of this side.")
    over: Axes = Field(description="Values of the axes of this side.")
    metrics: Several[Annotated[str, OneOf(ASKED_METRICS)]] = Field(
        description="What is compared, in this order: time and memory of a step, or the error of its result."
    )


class WaysKeys(Keys):
    sizes: Annotated[Set[Count], Field(min_length=2)] = Field(
        description="The study's sizes to measure them at; each costs every way a process, `compile` up to a minute."
    )
    executions: Set[Execution] = Field(
        [], description="Executions besides the study's own; `cuda-graph` is left out on a CPU."
    )
    precisions: Set[Precision] = Field(
        [],
        description="Precisions that count as equally accurate, the only ones of a device at its best; empty for the "
        "study's first one.",
    )
    cpu_threads: Set[CoreCount] = Field([], description="Fewer cores for the CPU, as the study's `cpu_threads`.")
    protocols: Set[Protocol] = Field(
        [], description="The study's protocols to measure them by; empty for all of its own."
    )


class Epochs(Keys):
    epochs: Annotated[int, Field(strict=True, ge=1, le=MOST_EPOCHS)] = Field(description="Epochs of the run.")
    samples: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] = Field(
        description="Samples of an epoch; its last batch may be short."
    )


class PublishedKeys(Keys):
    statement: Text = Field(description="The statement, in a clause.")
    source: Text = Field(description="Author, title and date of the source.")
    crossover: Range | None = Field(
        None,
        description="Lowest and highest published crossover on the study's x axis (the same twice for a single value), "
        "or null.",
    )
    results: Text | None = Field(
        None,
        description="A CSV file with the source's measurements, beside the study's file or in config/published/, to "
        "show beside ours (config/README.md describes its form), or null.",
    )


class StudyKeys(Keys):
    """Keys of a study's file: one question with its grid and protocol."""

    title: Text = Field(description="Heading of the study in the report.")
    question: Text = Field(description="What the study answers, as a question.")
    workload: Annotated[str, Matching("[A-Za-z0-9_-]+", "a module's name of letters, digits, _ and -")] = Field(
        description="What is computed: a module in scripts/crossover/measurement/workloads/."
    )
    model: Text | None = Field(
        None,
        description=f"A model of your own in place of a workload: {FORMS}. Files are looked for beside the study's "
        "file, then in the working directory. Then `question` alone must be given.",
    )
    mode: Mode = Field(MODES[0], description="What a step of `model` does.")
    data: Data | None = Field(None, description=DATA)
    check: Flag = Field(True, description="Whether the answers of `model` are compared with double precision.")
    sizes: Several[Count | Text] = Field(
        description="Points on the workload's size axis; of a `model` also names, as [resnet18, resnet34]."
    )
    batch_sizes: Several[Count] = Field(description="Samples in a step.")
    protocols: Several[Protocol] = Field(
        ["resident"],
        description="What a step includes. `resident` keeps the data on the device; `as_published` does what the "
        "source does; `loaded` takes each batch from the Dataset or loader that a `model` gives.",
    )
    precisions: Several[Precision] = Field(
        ["fp32"],
        description="Arithmetic. `fp32` is IEEE single precision with TF32 off, on every backend; `tf32` needs a GPU "
        "that has it; `amp-` is autocast, with a loss scaler in fp16; `bf16`, `fp16` and `fp64` are pure.",
    )
    executions: Several[Execution] = Field(
        ["eager"],
        description="How the step runs. `compile` compiles the model with torch.compile; `cuda-graph` captures the "
        "whole step.",
    )
    variants: Several[Annotated[str, Matching("[A-Za-z0-9_]+", "a name of letters, digits and _", 100)]] = Field(
        [PLAIN], description="Options of the workload, from VARIANTS of its module; `plain` is none."
    )
    devices: Several[Device] | None = Field(
        None,
        description="The only devices to measure on, if others would take too long; null for all of the run's.",
    )
    cpu_threads: Set[CoreCount] = Field(
        [],
        description="Fewer cores to time the CPU on, besides all of them: numbers, or `half` of the physical cores. "
        f"They become devices `{BASELINE}-1`, `{BASELINE}-{HALF}`.",
    )
    effort: Annotated[Any, PartOf(Effort)] = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort` for this study. Of `warmup_max_s` and `timed_max_s` "
        "the smaller one counts, the study's or the run's, so that a short run stays short.",
    )
    trials: Trials | None = Field(
        None,
        description="Processes that measure each cell of this study's grid, if they are fewer than the run's; null for "
        "the run's.",
    )
    refinement: Annotated[Any, PartOf(RefinementKeys)] | None = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort.refinement` for this study; null for no refinement.",
    )
    ways: WaysKeys | None = Field(
        None,
        description="Further ways to compute the study's cells, so that each device is also compared at its best. Each "
        "is measured once at `sizes`; refinement adds trials where it could win. Null for none.",
    )
    time_limit_s: Seconds | None = Field(
        None,
        description="Seconds after which a trial, a training or a try of a search ends with status `timeout`; null for "
        "the run's limit.",
    )
    mem_mb: Annotated[int, Field(strict=True, ge=1, le=100_000_000)] | None = Field(
        None,
        description="Megabytes of host memory that each of the study's jobs asks a cluster for, doubled when a job is "
        "sent again; null for what follows from the model's parameters, the size of its table, and the memory measured "
        "in a cell's first trial.",
    )
    figures: Several[Text] = Field(
        ["times", "speedups", "precisions", "time_split", "memory", "energy"],
        description="Kinds of figures to draw, each a module in scripts/crossover/figures/kinds/; those that have "
        "nothing to show on the run's devices are left out.",
    )
    x_axis: Literal["size", "parameters"] = Field(
        "size",
        description="What the figures and the crossover are read over; the size also where parameters do not tell the "
        "sizes apart (pixels, tokens, a frozen model).",
    )
    latency_steps: Literal[0] | Annotated[int, Field(strict=True, ge=LATENCY_STEPS_MIN, le=LATENCY_STEPS_MAX)] = Field(
        0,
        description="Number of individually synchronised steps for percentiles of the latency, at least "
        f"{LATENCY_STEPS_MIN}, the fewest of which the 99th percentile has a 95 % interval; 0 for none.",
    )
    latency_mistakes: Flag = Field(
        False,
        description="Whether the latency is also measured with the common mistakes, to show how wrong they are.",
    )
    largest_batch: Flag = Field(
        False,
        description="Whether the run also searches for the largest batch that fits, for each line of the study, as the "
        "run's `largest_batch` says. Needs `timed`.",
    )
    steps_per_run: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] | Epochs | None = Field(
        None,
        description="Steps of the published run, or its epochs and their samples; times are then also given for a "
        "whole run. Null if there is none.",
    )
    timed: Flag = Field(
        True,
        description="Whether the cells are timed; false for a study that only trains models for their quality.",
    )
    quality: QualityKeys | None = Field(
        None,
        description="Trains each model on every device and in every precision from the same seeds, and compares their "
        "predictions; null for no training.",
    )
    published: PublishedKeys | None = Field(None, description="The published comparison, or null.")
    claims: list[ClaimKeys] = Field(
        [],
        description="Statements of the source and of our own that are checked against the measurements, each with "
        "exactly one of the keys after `published`; config/README.md has examples.",
    )
    asks: AsksKeys | None = Field(
        None,
        description="What the study asks, where that is one side over another at its largest size: its first answer is "
        "their ratio in each metric. Null: the answer follows from the figures.",
    )


class _Schema(GenerateJsonSchema):
    """JSON schemas without the titles that pydantic makes of names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@cache
def json_schema(keys: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a mapping, without references."""
    schema = keys.model_json_schema(schema_generator=_Schema)
    definitions = schema.pop("$defs", {})

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(part) for part in node]
        if not isinstance(node, Mapping):
            return node
        whole = {**definitions[node["$ref"].rpartition("/")[2]], **node} if "$ref" in node else node
        names = ("$ref", "title") if whole.get("type") == "object" else ("$ref",)
        return {key: inlined(part) for key, part in whole.items() if key not in names or not isinstance(part, str)}

    complete: dict[str, Any] = inlined(schema)
    return complete


def schema_file() -> str:
    """The text of config/schema.yaml, by which editors check and complete what is typed."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Crossover configuration",
        **json_schema(ConfigKeys),
        "$defs": {"study": json_schema(StudyKeys)},
    }
    text = yaml.safe_dump(schema, sort_keys=False, width=120, default_flow_style=None)
    return (
        f"# Made from scripts/crossover/config/schema.py. Delete it, and tests/crossover/config makes it anew.\n{text}"
    )
