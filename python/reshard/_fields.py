"""The fields of results. tools/dev/report_fields.py makes this file of those that
src/frontend/report_fields.cc says; do not edit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._results import Report, Result

if TYPE_CHECKING:
    from ._reports import Layout, Strategy

__all__ = [
    "AgainstReport",
    "Block",
    "Box",
    "CommitReport",
    "CutParameter",
    "Damage",
    "DiffReport",
    "DigestReport",
    "Failure",
    "FileDifference",
    "Findings",
    "FirstDifference",
    "FullParameter",
    "FullValues",
    "InspectReport",
    "InspectedFile",
    "IoUsed",
    "MapStretch",
    "MeasuredParameter",
    "MergeReport",
    "OwnValuesOfBoth",
    "Parameter",
    "ParameterDiff",
    "ParameterDigest",
    "ParameterTotals",
    "RecodeReport",
    "ReplicaDifference",
    "ReplicaPair",
    "ReplicaSample",
    "Replicas",
    "ReplicasOfBoth",
    "Runs",
    "ShardOutcome",
    "ShardedParameters",
    "SourceFile",
    "Statistics",
    "StatusReport",
    "StoredParameter",
    "StrategyReport",
    "Stretch",
    "TargetFile",
    "TensorType",
    "Total",
    "Totals",
    "UnreadTensor",
    "ValueDifference",
    "WarningMessage",
    "WorkerStatus",
    "WrittenFile",
]


class WrittenFile(Result):
    path: str
    size: int


class Parameter(Result):
    name: str
    dtype: str
    full_shape: tuple[int, ...]
    bytes: int


class ParameterTotals(Result):
    """Elements of the weights, and of the optimizer's states."""

    weights: int
    optimizer: int


class IoUsed(Result):
    """How many files were read and written in which way."""

    sources_mapped: int
    sources_read: int
    targets_direct: int
    targets_buffered: int


class ReplicaPair(Result):
    """Two ranks that ought to hold the same shard."""

    rank: int
    reference: int
    other_type: bool | None = None
    offset: int | None = None


class ReplicaDifference(Result):
    parameter: str
    stage: int
    pairs: tuple[ReplicaPair, ...]
    pair_count: int


class Replicas(Result):
    compared: int
    shards: int
    bytes: int
    differing: int
    differences: tuple[ReplicaDifference, ...]


class ReplicaSample(Result):
    parameters: int
    comparisons: int
    confirming: int
    files: int
    files_opened: int
    reads: int
    bytes: int
    seconds: float


class ShardOutcome(Result):
    """The outcome of the share of one process."""

    index: int
    count: int
    published: bool
    already_published: bool
    outstanding: tuple[int, ...]


class WarningMessage(Result):
    """A warning of a call that succeeded; `code` is stable."""

    code: str
    message: str


class ConvertReportFields(Report):
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
    own_values: tuple[str, ...] | None
    sample: ReplicaSample | None
    files_kept: int
    completed_earlier_run: bool
    already_published: bool
    shard: ShardOutcome | None
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class SourceFile(Result):
    rank: int
    path: str
    size: int


class TargetFile(Result):
    rank: int
    path: str
    size: int
    parameters: int
    runs: int
    source_ranks: tuple[int, ...]
    kind: str


class Runs(Result):
    """Contiguous stretches that are copied; bytes."""

    count: int
    shortest: int
    mean: int
    longest: int


class PlanReportFields(Report):
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


class Block(Result):
    """A stretch of a file that has a digest of its own."""

    index: int
    offset: int
    length: int


class Damage(Result):
    """A file of a target folder that is not as it was written."""

    path: str
    kind: str
    detail: str
    first_bad_block: Block | None
    bad_blocks: int
    parameters: tuple[str, ...]
    parameter_count: int


class VerifyReportFields(Report):
    target: str
    equal: bool
    manifests: tuple[str, ...]
    files: int
    files_without_digest: int
    bytes: int
    damages: tuple[Damage, ...]
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class FirstDifference(Result):
    offset: int
    parameter: str | None
    in_header: bool
    expected: int
    found: int
    shard_offset: int | None = None
    source: str | None = None
    source_offset: int | None = None


class FileDifference(Result):
    path: str
    expected_size: int
    found_size: int | None
    differing_bytes: int
    first: FirstDifference | None
    parameters: tuple[str, ...]
    parameter_count: int


class AgainstReport(Report):
    target: str
    source: Any
    equal: bool
    files: int
    bytes: int
    left_out: int
    renamed: int
    from_origin: tuple[str, ...]
    differences: tuple[FileDifference, ...]
    replicas: Replicas
    own_values: tuple[str, ...]
    seconds: float
    warnings: tuple[WarningMessage, ...]


class ParameterDigest(Result):
    name: str
    dtype: str
    full_shape: tuple[int, ...] | None
    bytes: int
    digest: str
    ranks: tuple[int, ...] | None = None


class DigestReport(Report):
    path: str
    parameters: tuple[ParameterDigest, ...]
    digest: str
    bytes: int
    bytes_read: int
    replicas: Replicas | None
    own_values: tuple[str, ...] | None
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class TensorType(Result):
    dtype: str
    full_shape: tuple[int, ...] | None


class ValueDifference(Result):
    numbers: int
    greatest: float | str
    nan_against_number: int
    nan_against_nan: int


class ParameterDiff(Result):
    name: str
    relation: str
    a: TensorType | None
    b: TensorType | None
    values: ValueDifference | None = None
    a_ranks: tuple[int, ...] | None = None
    b_ranks: tuple[int, ...] | None = None


class ReplicasOfBoth(Result):
    a: Replicas
    b: Replicas


class OwnValuesOfBoth(Result):
    a: tuple[str, ...]
    b: tuple[str, ...]


class DiffReport(Report):
    equal: bool
    parameters: tuple[ParameterDiff, ...]
    bytes: int
    bytes_read: int
    replicas: ReplicasOfBoth | None
    own_values: OwnValuesOfBoth | None
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class MergeReport(Report):
    output: str
    sources: tuple[str, ...]
    parameters: int
    bytes_compared: int
    bytes_written: int
    seconds: float
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


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


class CommitReport(Report):
    target: str
    already_published: bool
    warnings: tuple[WarningMessage, ...]


class WorkerStatus(Result):
    """How far the share of one process is."""

    index: int
    state: str
    process: str | None
    phase: str | None
    bytes_done: int
    total_bytes: int
    files_done: int
    total_files: int
    bytes_per_second: float
    seconds_remaining: float | None


class StatusReport(Report):
    """How far a conversion is."""

    target: str
    state: str
    attention: str | None
    alone: bool
    publishing: bool
    bytes_done: int
    total_bytes: int
    files_done: int
    total_files: int
    bytes_per_second: float
    seconds_remaining: float | None
    workers: tuple[WorkerStatus, ...]
    notes: tuple[str, ...]


class StrategyReport(Report):
    """A strategy file that was written."""

    output: str
    stages: int
    devices_per_stage: int
    layouts: int
    bytes: int
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class PageReportFields(Report):
    output: str
    bytes: int
    warnings: tuple[WarningMessage, ...]


class Stretch(Result):
    """Bytes of a file: a Value, or a part of a MapTensor."""

    offset: int
    length: int


class StoredParameter(Result):
    """A parameter as its file holds it."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    offset: int | None
    bytes: int
    values: int
    content: tuple[Stretch, ...]


class UnreadTensor(Result):
    """A tensor of a file that cannot be read."""

    name: str
    reason: str


class InspectedFile(Result):
    path: str
    rank: int | None
    size: int
    crc: int | None
    parameters: tuple[StoredParameter, ...]
    unread: tuple[UnreadTensor, ...]


class LayoutFields(Result):
    stage: int
    name: str
    device_matrix: tuple[int, ...]
    tensor_map: Any
    opt_weight_shard_step: int
    opt_weight_shard_size: int
    tensor_shape: tuple[int, ...] | None


class StrategyFields(Result):
    path: str
    is_pipeline: bool
    stages: int
    devices_per_stage: int
    meaning: str
    parameters: tuple[Layout, ...]
    notes: tuple[str, ...]


class Total(Result):
    parameters: int
    bytes: int


class Totals(Result):
    """Of all files, replicas counted as often as they are stored."""

    files: int
    parameters: int
    bytes: int
    by_dtype: dict[str, Total]
    by_prefix: dict[str, Total]


class Failure(Result):
    """A file that could not be read."""

    path: str
    code: str
    message: str


class FullParameter(Result):
    """A full tensor."""

    name: str
    dtype: str
    full_shape: tuple[int, ...] | None


class ShardedParameters(Result):
    path: str
    parameters: tuple[FullParameter, ...]


class InspectReport(Report):
    """The files that inspect read. `errors` lists the files that could not be read."""

    checkpoints: tuple[InspectedFile, ...]
    strategies: tuple[Strategy, ...]
    totals: Totals
    warnings: tuple[WarningMessage, ...]
    errors: tuple[Failure, ...]
    sharded: tuple[ShardedParameters, ...] | None = None


class Findings(Result):
    """The findings of opening and planning a conversion."""

    parameters: int
    left_out: int
    renamed: int
    largest: tuple[Parameter, ...]
    source_parameters: ParameterTotals | None
    chosen_parameters: ParameterTotals | None
    stage_alone: int | None
    step: str | None
    sample: ReplicaSample | None
    warnings: tuple[WarningMessage, ...]
    notes: tuple[str, ...]


class Statistics(Result):
    values: int
    min: float | None
    max: float | None
    mean: float | None
    nan: int
    inf: int


class MeasuredParameter(StoredParameter):
    """A stored parameter and statistics of its values."""

    statistics: Statistics | None


class MapStretch(Stretch):
    part: str
    type: str
    shape: tuple[int, ...]


class Box(Result):
    begin: tuple[int, ...]
    extent: tuple[int, ...]
    ranks: tuple[int, ...]


class CutParameter(FullParameter):
    """A full parameter and the layout that cuts it."""

    stage: int
    in_strategy: bool
    shards: tuple[Box, ...]


class FullValues(FullParameter):
    """A full parameter and statistics of its values."""

    statistics: Statistics | None
