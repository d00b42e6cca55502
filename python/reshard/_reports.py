"""Results of the calls: frozen, typed, with the names of the command line's JSON."""

from __future__ import annotations

import dataclasses
import functools
import html
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _errors, _reshard
from ._guards import is_list, is_mapping, is_tuple

R = TypeVar("R")


def size_in_words(count: float) -> str:
    """A number of bytes, such as "1.1 MiB"."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"


class Result:
    """Base of all results and their parts."""

    def to_dict(self) -> dict[str, Any]:
        """As the command line's JSON document, but for `schema_version` and `command`."""
        plain: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            # What has a default is left out where there is nothing to say.
            if value is not None or field.default is dataclasses.MISSING:
                plain[field.name] = _plain(value)
        return plain


class Report(Result):
    """What a call returns."""

    def __bool__(self) -> bool:
        raise TypeError("a report is neither true nor false: ask its `ok` or `equal`")


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if is_mapping(value):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if is_tuple(value) else value


@functools.lru_cache(maxsize=None)
def _hints(cls: Any) -> dict[str, Any]:
    # By this module: the classes say that they are the package's.
    return typing.get_type_hints(cls, globals())


def _typed(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _typed(typing.get_args(hint)[0], value)
    if typing.get_origin(hint) is tuple:
        return tuple(_typed(typing.get_args(hint)[0], member) for member in value)
    if typing.get_origin(hint) is dict:
        return {name: _typed(typing.get_args(hint)[1], member) for name, member in value.items()}
    if isinstance(hint, type) and issubclass(hint, Result):
        return build(hint, value)
    return _frozen(value)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if is_list(value) else value


def _with_fields(cls: Any, found: dict[str, Any]) -> Any:
    """The class, or that of its subclasses which has just these fields."""
    for more in cls.__subclasses__():
        if found.keys() == {field.name for field in dataclasses.fields(more)}:
            return more
    return cls


def build(cls: Callable[..., R], found: dict[str, Any]) -> R:
    """Returns the dataclass that the dict of the C++ module stands for."""
    cls = _with_fields(cls, found)
    hints = _hints(cls)
    return cls(**{name: _typed(hints[name], value) for name, value in found.items()})


@dataclass(frozen=True)
class WarningMessage(Result):
    """What a call that went well says all the same; `code` is stable."""

    code: str
    message: str


@dataclass(frozen=True)
class WrittenFile(Result):
    path: str  # relative to the target folder
    size: int


@dataclass(frozen=True)
class SourceFile(Result):
    rank: int
    path: str
    size: int


@dataclass(frozen=True)
class TargetFile(Result):
    rank: int
    path: str  # relative to the target folder
    size: int
    parameters: int
    runs: int
    source_ranks: tuple[int, ...]


@dataclass(frozen=True)
class Parameter(Result):
    name: str
    dtype: str
    full_shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class ParameterTotals(Result):
    """Elements of the weights, and of the optimizer's copies of them."""

    weights: int
    optimizer: int


@dataclass(frozen=True)
class IoUsed(Result):
    """How many files were read and written in which way."""

    sources_mapped: int
    sources_read: int
    targets_direct: int
    targets_buffered: int


@dataclass(frozen=True)
class ReplicaPair(Result):
    """Two ranks that ought to hold the same shard."""

    rank: int
    reference: int
    other_type: bool | None = None
    offset: int | None = None


@dataclass(frozen=True)
class ReplicaDifference(Result):
    parameter: str
    stage: int
    pairs: tuple[ReplicaPair, ...]
    pair_count: int


@dataclass(frozen=True)
class Replicas(Result):
    compared: int
    shards: int
    bytes: int
    differing: int
    differences: tuple[ReplicaDifference, ...]


@dataclass(frozen=True)
class ReplicaSample(Result):
    parameters: int
    comparisons: int
    confirming: int
    files: int
    files_opened: int
    reads: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class ShardOutcome(Result):
    """What became of one process's share."""

    index: int
    count: int
    published: bool
    already_published: bool
    outstanding: tuple[int, ...]


@dataclass(frozen=True)
class ConvertReport(Report):
    target: str
    files: tuple[WrittenFile, ...]
    parameters: int
    left_out: int
    renamed: int
    largest: tuple[Parameter, ...]
    source_parameters: ParameterTotals | None
    chosen_parameters: ParameterTotals | None
    stage_alone: int | None
    step: str | None
    source_ranks: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    seconds: float
    memory_planned: int
    memory_peak: int
    anonymous_peak: int
    io: IoUsed
    crc_files: int
    crc_bytes: int
    values_lost: int
    values_zeroed: int
    pruned: int
    replicas: Replicas | None
    sample: ReplicaSample | None
    files_kept: int
    completed_earlier_run: bool
    already_published: bool
    shard: ShardOutcome | None
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]

    @property
    def published(self) -> bool:
        """Whether the whole set is in place; of a share, whether it put it there or found it there:
        of those that end side by side one did."""
        return self.shard is None or self.shard.published


@dataclass(frozen=True)
class Runs(Result):
    """Contiguous stretches that are copied; bytes."""

    count: int
    shortest: int
    mean: int
    longest: int


@dataclass(frozen=True)
class PlanReport(Report):
    sources: tuple[SourceFile, ...]
    targets: tuple[TargetFile, ...]
    source_ranks: tuple[int, ...]
    parameters: int
    left_out: int
    renamed: int
    largest: tuple[Parameter, ...]
    source_parameters: ParameterTotals | None
    chosen_parameters: ParameterTotals | None
    stage_alone: int | None
    step: str | None
    bytes_read: int
    bytes_written: int
    runs: Runs
    memory_bytes: int
    memory_limit: int
    space_needed: int
    space_free: int | None
    sample: ReplicaSample | None
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]

    def explain(self) -> str:
        """The plan in words, some lines, with its warnings and notes."""
        free = "not known" if self.space_free is None else size_in_words(self.space_free)
        lines = [
            f"files: {len(self.targets)}, out of {len(self.sources)} of the source",
            f"parameters: {self.parameters}, left out: {self.left_out}, renamed: {self.renamed}",
            *self._strategy(),
            f"bytes: {size_in_words(self.bytes_read)} read, {size_in_words(self.bytes_written)}"
            f" written; runs: {self.runs.count}, of {size_in_words(self.runs.mean)} on average",
            f"memory: about {size_in_words(self.memory_bytes)} of at most"
            f" {size_in_words(self.memory_limit)}",
            f"space: {size_in_words(self.space_needed)} needed, free: {free}",
            *(f"warning: {warning.message}" for warning in self.warnings),
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _strategy(self) -> list[str]:
        if self.sample is None or self.sample.parameters == 0:
            return []
        if self.sample.confirming == 0:
            return ["source strategy: not confirmed, no replica of a matrix was compared"]
        return [f"source strategy: confirmed by replicas, {self.sample.confirming}"]


@dataclass(frozen=True)
class Block(Result):
    """A stretch of a file that has a digest of its own."""

    index: int
    offset: int
    length: int


@dataclass(frozen=True)
class Damage(Result):
    """A file of a target folder that is not as it was written."""

    path: str  # relative to the target folder
    kind: str
    detail: str
    first_bad_block: Block | None
    bad_blocks: int
    parameters: tuple[str, ...]  # the first 20 that are touched
    parameter_count: int


@dataclass(frozen=True)
class VerifyReport(Report):
    """What verify found. Damage is a result: ask `ok`."""

    target: str
    equal: bool
    manifests: tuple[str, ...]
    files: int
    files_without_digest: int  # only their sizes are known
    bytes: int
    damages: tuple[Damage, ...]
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.equal


@dataclass(frozen=True)
class FirstDifference(Result):
    offset: int
    parameter: str | None
    in_header: bool
    expected: int
    found: int
    shard_offset: int | None = None
    source: str | None = None
    source_offset: int | None = None


@dataclass(frozen=True)
class FileDifference(Result):
    path: str
    expected_size: int
    found_size: int | None
    differing_bytes: int
    first: FirstDifference | None
    parameters: tuple[str, ...]
    parameter_count: int


@dataclass(frozen=True)
class AgainstReport(Report):
    target: str
    source: Any  # the path, or the files by rank
    equal: bool
    files: int
    bytes: int
    left_out: int
    renamed: int
    from_origin: tuple[str, ...]  # keywords that were taken from the target's origin.jsonl
    differences: tuple[FileDifference, ...]
    replicas: Replicas
    seconds: float
    warnings: tuple[WarningMessage, ...]


@dataclass(frozen=True)
class ParameterDigest(Result):
    name: str
    dtype: str
    full_shape: tuple[int, ...] | None
    bytes: int
    digest: str
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class DigestReport(Report):
    path: str
    parameters: tuple[ParameterDigest, ...]
    digest: str  # of all of them
    bytes: int
    bytes_read: int
    replicas: Replicas | None
    own_values: tuple[str, ...] | None
    seconds: float
    warnings: tuple[WarningMessage, ...]


@dataclass(frozen=True)
class TensorType(Result):
    dtype: str
    full_shape: tuple[int, ...] | None


@dataclass(frozen=True)
class ValueDifference(Result):
    numbers: int
    greatest: float | str  # "inf" where it is infinite
    nan_against_number: int
    nan_against_nan: int


@dataclass(frozen=True)
class ParameterDiff(Result):
    name: str
    relation: str
    a: TensorType | None
    b: TensorType | None
    values: ValueDifference | None = None
    a_ranks: tuple[int, ...] | None = None
    b_ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ReplicasOfBoth(Result):
    a: Replicas
    b: Replicas


@dataclass(frozen=True)
class OwnValuesOfBoth(Result):
    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True)
class DiffReport(Report):
    equal: bool
    parameters: tuple[ParameterDiff, ...]
    bytes: int
    bytes_read: int
    replicas: ReplicasOfBoth | None
    own_values: OwnValuesOfBoth | None
    seconds: float
    warnings: tuple[WarningMessage, ...]


@dataclass(frozen=True)
class MergeReport(Report):
    output: str
    sources: tuple[str, ...]
    parameters: int
    bytes_compared: int
    bytes_written: int
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RecodeReport(Report):
    target: str
    files: tuple[WrittenFile, ...]
    parameters: int
    renamed: int
    bytes_read: int
    bytes_written: int
    seconds: float
    crc_files: int
    crc_bytes: int
    files_kept: int
    completed_earlier_run: bool
    already_published: bool
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class CommitReport(Report):
    target: str
    already_published: bool
    warnings: tuple[WarningMessage, ...]


@dataclass(frozen=True)
class StrategyReport(Report):
    """A strategy file that was written."""

    output: str
    stages: int
    devices_per_stage: int
    layouts: int
    bytes: int
    warnings: tuple[WarningMessage, ...]


@dataclass(frozen=True)
class MadeStrategyReport(StrategyReport):
    """A strategy file that was made of a specification."""

    notes: tuple[str, ...]


@dataclass(frozen=True)
class ConvertedStrategyReport(Report):
    """A strategy in the other encoding, or under other names."""

    output: str
    layouts: int
    bytes: int
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MergedStrategyReport(Report):
    """The strategy of a pipeline, of one file a stage."""

    output: str
    stages: int
    bytes: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PageReport(Report):
    """An HTML page that was written; a notebook shows it."""

    output: str
    bytes: int
    warnings: tuple[WarningMessage, ...]

    def _repr_html_(self) -> str:
        with open(self.output, encoding="utf-8") as page:
            content = html.escape(page.read())
        return f'<iframe srcdoc="{content}" width="100%" height="600" sandbox></iframe>'


@dataclass(frozen=True)
class Stretch(Result):
    """Bytes of a file: a Value, or a part of a MapTensor."""

    offset: int
    length: int


@dataclass(frozen=True)
class MapStretch(Stretch):
    part: str  # "keys", "values" or "status"
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Statistics(Result):
    values: int
    min: float | None
    max: float | None
    mean: float | None
    nan: int
    inf: int


@dataclass(frozen=True)
class StoredParameter(Result):
    """A parameter as its file holds it."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    offset: int | None  # of the content in the file
    bytes: int
    values: int  # pieces that the file holds it in
    content: tuple[Stretch, ...]


@dataclass(frozen=True)
class MeasuredParameter(StoredParameter):
    """The same with what its content is."""

    statistics: Statistics | None  # of what has numbers


@dataclass(frozen=True)
class InspectedFile(Result):
    path: str
    rank: int | None
    size: int
    crc: int | None
    parameters: tuple[StoredParameter, ...]


@dataclass(frozen=True)
class Layout(Result):
    """How a strategy cuts a parameter (docs/layouts.md)."""

    stage: int
    name: str
    device_matrix: tuple[int, ...]
    tensor_map: Any  # of each dimension its device axis, or several
    opt_weight_shard_step: int
    opt_weight_shard_size: int
    tensor_shape: tuple[int, ...] | None

    def box(self, shape: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Returns offsets and sizes of what a rank, counted within its stage, holds of a full
        tensor of this shape."""
        nested = self.tensor_map and is_tuple(self.tensor_map[0])
        return _errors.call(
            {},
            _reshard.box_of_shard,
            self.device_matrix,
            self.tensor_map if nested else (self.tensor_map,),
            self.opt_weight_shard_step,
            self.opt_weight_shard_size,
            shape,
            rank,
        )


@dataclass(frozen=True)
class Strategy(Result):
    path: str
    is_pipeline: bool
    stages: int
    devices_per_stage: int
    meaning: str  # in words
    parameters: tuple[Layout, ...]
    notes: tuple[str, ...]

    @functools.cached_property
    def _by_stage_and_name(self) -> dict[tuple[int, str], Layout]:
        return {(layout.stage, layout.name): layout for layout in self.parameters}

    def layout(self, name: str, stage: int = 0) -> Layout | None:
        """The layout of a parameter, or None where the strategy has none for it."""
        return self._by_stage_and_name.get((stage, name))


@dataclass(frozen=True)
class Total(Result):
    parameters: int
    bytes: int


@dataclass(frozen=True)
class Totals(Result):
    """Of all files, replicas counted as often as they are stored."""

    files: int
    parameters: int
    bytes: int
    by_dtype: dict[str, Total]
    by_prefix: dict[str, Total]


@dataclass(frozen=True)
class Failure(Result):
    """What could not be read."""

    path: str
    code: str
    message: str


@dataclass(frozen=True)
class Box(Result):
    begin: tuple[int, ...]
    extent: tuple[int, ...]
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class FullParameter(Result):
    """A full tensor."""

    name: str
    dtype: str
    full_shape: tuple[int, ...] | None


@dataclass(frozen=True)
class CutParameter(FullParameter):
    """And what it is cut into."""

    stage: int
    in_strategy: bool
    shards: tuple[Box, ...]


@dataclass(frozen=True)
class FullValues(FullParameter):
    """And what its content is."""

    statistics: Statistics | None


@dataclass(frozen=True)
class ShardedParameters(Result):
    path: str
    parameters: tuple[FullParameter, ...]


@dataclass(frozen=True)
class InspectReport(Report):
    """What inspect found. What could not be read is in `errors`."""

    checkpoints: tuple[InspectedFile, ...]
    strategies: tuple[Strategy, ...]
    totals: Totals
    warnings: tuple[WarningMessage, ...]
    errors: tuple[Failure, ...]
    sharded: tuple[ShardedParameters, ...] | None = None  # with a strategy
