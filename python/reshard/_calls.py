"""The library's calls: keywords are the command line's options, results its JSON documents.

Options are rows of the option table in src/options. The signatures here follow it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, cast

from . import _errors, _jobs, _keys, _modules, _reshard
from ._fields import (
    AgainstReport,
    CommitReport,
    DiffReport,
    DigestReport,
    InspectReport,
    MergeReport,
    RecodeReport,
    StatusReport,
    StrategyReport,
)
from ._guards import is_mapping
from ._mount import Mount
from ._paths import SourceFormat, StrPath, encode
from ._progress import Event, ProgressChoice, Watch
from ._reports import ConvertReport, PageReport, PlanReport, VerifyReport
from ._target import TargetView

__all__ = [
    "all_source_ranks",
    "commit",
    "convert",
    "convert_strategy",
    "diff",
    "digest",
    "infer_strategy",
    "inspect",
    "make_strategy",
    "merge",
    "merge_strategies",
    "mount",
    "plan",
    "recode",
    "report",
    "source_ranks",
    "status",
    "target",
    "verify",
    "verify_against",
]

R = TypeVar("R")

Size = Union[int, str]  # bytes, or as "256M"
Texts = Union[str, Iterable[str]]
Ranks = Union[int, str, Iterable[Union[int, str]]]  # 3, "0-7,9", or a list of such values
Casts = Union[str, Iterable[str], Mapping[str, str]]  # "GLOB=TYPE", several, or {glob: type}
NameMap = Union[StrPath, Mapping[str, Any]]  # a JSON file, or its content
Source = Union[StrPath, Mapping[int, StrPath]]  # a path, or the file of each rank
Shard = Union[str, tuple[int, int]]  # (0, 4), "0/4", or "auto"


def _texts(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


def _plain(value: Any) -> Any:
    """A dict that the C++ module takes, of a mapping."""
    return dict(value) if is_mapping(value) else value


# Conversions of keywords for the C++ module. Other keywords are passed as they are.
_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "name_map": _plain,
    "param": _texts,
    "rename": _plain,
    "source": _plain,
}


def _own_words(given: Mapping[str, Any]) -> dict[str, str]:
    """The names that a call with these keywords has for options. digest and diff have their own."""
    own = {
        "source.strategy": ("strategy", "a_strategy", "b_strategy"),
        "source.format": ("a_format", "b_format"),
    }
    used = {option: [name for name in names if name in given] for option, names in own.items()}
    return {option: " or ".join(names) for option, names in used.items() if names}


def _run(function: Callable[..., R], given: dict[str, Any]) -> R:
    """Makes the call with the keywords `given`."""
    jobs = given.pop("jobs", None)
    if jobs is None:
        jobs = _jobs.default()
    # Calls that take no time have no such keywords.
    progress, cancel = given.pop("progress", False), given.pop("cancel", None)
    _keys.check(given)
    keywords = {
        name: _CONVERTED.get(name, lambda same: same)(value)
        for name, value in given.items()
        if value is not None
    }
    watch = Watch(progress, cancel)
    words = _own_words(given)
    try:
        return _errors.call(words, function, keywords, jobs, watch, words)
    finally:
        watch.close()


def convert(
    source: Source,
    target: StrPath,
    *,
    # Options of convert, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    force: bool | None = None,
    resume: bool | Literal["verify"] | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    prune: bool | None = None,
    encrypt: Literal["AES-GCM", "AES-CBC", "SM4-CBC"] | None = None,
    encrypt_key_file: StrPath | None = None,
    encrypt_key_env: str | None = None,
    crc: bool | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    dtype_overflow: Literal["warn", "error"] | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    check_replicas: bool | Literal["none", "sample", "all"] | None = None,
    reference: StrPath | None = None,
    expect_parameters: str | None = None,
    partial: bool | None = None,
    no_checksum: bool | None = None,
    memory_limit: Size | None = None,
    io: str | None = None,
    retries: int | None = None,
    shard: Shard | None = None,
    wait: int | None = None,
    # Its own.
    report: StrPath | None = None,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> ConvertReport:
    """Lays a checkpoint out again, as a copy, as `reshard convert` does.

    The keywords are its options, and None is its default (docs/reference/cli.md). All outputs
    appear or none do, also if Ctrl-C, `cancel`, or an error in `progress` ends the call.
    `shard="auto"` takes the numbers that mpirun, srun, torchrun and others put into the
    environment.
    """
    return _run(_reshard.convert, dict(locals()))


def commit(
    target: StrPath,
    *,
    # Options of commit, written by tests/python/keywords_test.py --bless.
    wait: int | None = None,
    # Its own.
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> CommitReport:
    """Publishes the files that the shards of a conversion have staged, if the last one was killed.

    NotFoundError if shards have not finished; the message names them.
    """
    return _run(_reshard.commit, dict(locals()))


def status(target: StrPath) -> StatusReport:
    """How far the conversion into `target` is, alone or by shards, and what has to be done for it.

    It changes no file and holds up no process. NotFoundError if there is no conversion.
    """
    return _run(_reshard.status, {"target": target})


def report(
    source: StrPath,
    output: StrPath,
    *,
    # Options of report, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    force: bool | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    companions: bool | StrPath | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    retries: int | None = None,
    # Its own.
    param: Texts | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> PageReport:
    """Draws a conversion, or without strategies the files of a source, as one HTML page.

    `param` names the parameters to draw with their ranks. A notebook shows the result in place.
    """
    return _run(_reshard.report, dict(locals()))


def infer_strategy(
    source: StrPath,
    output: StrPath,
    *,
    # Options of infer_strategy, written by tests/python/keywords_test.py --bless.
    reference: StrPath,
    force: bool | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> StrategyReport:
    """Writes a lost strategy again, for the ranks in `source`. `reference` has the full tensors. In
    JSON if the name of `output` ends in .json, else in protobuf."""
    return _run(_reshard.infer_strategy, dict(locals()))


def make_strategy(
    spec: StrPath | Mapping[str, Any] | None = None,
    output: StrPath | None = None,
    *,
    # Options of make_strategy, written by tests/python/keywords_test.py --bless.
    from_: StrPath | None = None,
    like: StrPath | None = None,
    src_strategy: StrPath | None = None,
    force: bool | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    # Its own.
) -> StrategyReport:
    """Writes the strategy of a new cluster (docs/guide/strategies.md).

    `make_strategy(spec, output)` follows a specification: a JSON file, or its content. `from_` is a
    checkpoint of full tensors that its patterns match. `make_strategy(output, like=...)` takes
    names, shapes and cuts from a source."""
    given = dict(locals())
    if output is None and like is not None:  # `spec` is the only path, the output
        spec, output = None, cast("StrPath | None", spec)
    if output is None or (spec is None and like is None):
        raise TypeError("make_strategy() needs a specification or `like`, and an output")
    given.update(spec=spec, output=output)
    if is_mapping(spec):
        given["spec_text"] = _modules.load("json").dumps(given.pop("spec"))
    return _run(_reshard.make_strategy, given)


def convert_strategy(
    strategy: StrPath,
    output: StrPath,
    *,
    # Options of convert_strategy, written by tests/python/keywords_test.py --bless.
    force: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    # Its own.
) -> StrategyReport:
    """Writes a strategy in JSON if the name of `output` ends in .json, else in protobuf."""
    return _run(_reshard.convert_strategy, dict(locals()))


def merge_strategies(
    folder: StrPath,
    output: StrPath,
    *,
    # Options of merge_strategies, written by tests/python/keywords_test.py --bless.
    force: bool | None = None,
    # Its own.
) -> StrategyReport:
    """Merges the strategy files of a pipeline's stages in `folder` into one file."""
    return _run(_reshard.merge_strategies, dict(locals()))


def plan(
    source: Source,
    target: StrPath,
    *,
    # Options of plan, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    force: bool | None = None,
    resume: bool | Literal["verify"] | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    prune: bool | None = None,
    encrypt: Literal["AES-GCM", "AES-CBC", "SM4-CBC"] | None = None,
    encrypt_key_file: StrPath | None = None,
    encrypt_key_env: str | None = None,
    crc: bool | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    dtype_overflow: Literal["warn", "error"] | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    check_replicas: bool | Literal["none", "sample", "all"] | None = None,
    reference: StrPath | None = None,
    expect_parameters: str | None = None,
    partial: bool | None = None,
    no_checksum: bool | None = None,
    memory_limit: Size | None = None,
    io: str | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> PlanReport:
    """Plans and checks a `convert` with these keywords, and writes no files."""
    return _run(_reshard.plan, dict(locals()))


def target(
    source: Source,
    *,
    # Options of target, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    crc: bool | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    check_replicas: bool | Literal["none", "sample", "all"] | None = None,
    reference: StrPath | None = None,
    expect_parameters: str | None = None,
    partial: bool | None = None,
    no_checksum: bool | None = None,
    memory_limit: Size | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> TargetView:
    """Plans and checks a `convert` with these keywords, and returns its files for reading, without
    writing them."""
    given = dict(locals())

    def opened(keywords: dict[str, Any], jobs: int, watch: Watch, _: dict[str, str]) -> TargetView:
        return TargetView(_reshard.View.open(keywords, jobs, watch))

    return _run(opened, given)


def mount(
    source: Source,
    folder: StrPath | None = None,
    *,
    # Options of mount, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    crc: bool | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    check_replicas: bool | Literal["none", "sample", "all"] | None = None,
    reference: StrPath | None = None,
    expect_parameters: str | None = None,
    partial: bool | None = None,
    no_checksum: bool | None = None,
    memory_limit: Size | None = None,
    retries: int | None = None,
    # Its own.
    cache: bool | None = None,
    allow_other: bool | None = None,
    jobs: int | None = None,
) -> Mount:
    """`with mount(...) as folder` has the files that `convert` with these keywords would write in
    `folder`, an empty one, or None for a temporary one. The program reshard-mount serves them."""
    given = dict(locals())
    _keys.check(given)
    return Mount(given.pop("source"), given.pop("folder"), given)


def verify(
    target: StrPath,
    *,
    # Options of verify, written by tests/python/keywords_test.py --bless.
    key_file: StrPath | None = None,
    key_env: str | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> VerifyReport:
    """Reads a finished target folder and compares it with its manifests.

    `key_file` or `key_env` name the key of encrypted files, a file or an environment variable.
    `jobs` threads read; 0 is all cores, None the cores up to 4. `progress` is called ten times a
    second and at the end; its exceptions, or Ctrl-C, end the call. `cancel` ends it with
    CancelledError once its is_set() is true.
    """
    return _run(_reshard.verify, dict(locals()))


def verify_against(
    target: StrPath,
    source: Source,
    *,
    # Options of verify_against, written by tests/python/keywords_test.py --bless.
    src_strategy: StrPath | None = None,
    dst_strategy: StrPath | None = None,
    rank: Ranks | None = None,
    format: Literal["ckpt", "safetensors", "unified", "huggingface", "hf"] | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    name_map: NameMap | None = None,
    group_info: StrPath | Iterable[StrPath] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    prefix: str | None = None,
    part_size: Size | None = None,
    shard_size: Size | None = None,
    names: str | None = None,
    encrypt_key_file: StrPath | None = None,
    encrypt_key_env: str | None = None,
    companions: bool | StrPath | None = None,
    remove_redundancy: bool | None = None,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    optimizer_sharding: bool | int | None = None,
    stage_layers: Iterable[int] | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    dtype: Casts | None = None,
    unmatched: Literal["copy", "drop", "error"] | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> AgainstReport:
    """Compares each byte of `target` with the expected output of a conversion of `source`."""
    return _run(_reshard.verify_against, dict(locals()))


def digest(
    path: StrPath,
    *,
    # Options of digest, written by tests/python/keywords_test.py --bless.
    strategy: StrPath | None = None,
    one_replica: bool | None = None,
    src_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    suffix: str | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> DigestReport:
    """Returns the digest of each parameter, and of all: the same however they are cut."""
    return _run(_reshard.digest, dict(locals()))


def inspect(
    *paths: StrPath,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    suffix: str | None = None,
    src_format: SourceFormat | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    strategy: StrPath | None = None,
    values: bool = False,
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> InspectReport:
    """Lists the contents of checkpoint files, folders of ranks and strategies, as `reshard inspect`
    does.

    Reads only headers of checkpoints; with `values` all bytes, on `jobs` threads. With
    `strategy`, describes the checkpoint at the path: its full tensors and their cuts. `errors`
    of the report has the files that could not be read; if there are no others, the first error
    is raised.
    """
    if not paths:
        raise _errors.InvalidArgumentError("inspect: expected at least one path")
    # Without values no bytes are read that a bar could count.
    given = {**locals(), "jobs": _jobs.threads(jobs), "progress": progress if values else False}
    return _run(_reshard.inspect, given)


def diff(
    a: StrPath,
    b: StrPath,
    *,
    # Options of diff, written by tests/python/keywords_test.py --bless.
    a_strategy: StrPath | None = None,
    b_strategy: StrPath | None = None,
    values: bool | None = None,
    one_replica: bool | None = None,
    a_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    b_format: Literal["plain", "huggingface-shards", "mindformers", "dcp", "fsdp"] | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> DiffReport:
    """Compares two checkpoints with any cuts. Differences are a result."""
    return _run(_reshard.diff, dict(locals()))


def merge(
    files: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    # Options of merge, written by tests/python/keywords_test.py --bless.
    strategy: StrPath | None = None,
    segments: bool | None = None,
    force: bool | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    include: Texts | None = None,
    exclude: Texts | None = None,
    weights_only: bool | None = None,
    unmatched: Literal["copy"] | None = None,
    partial: bool | None = None,
    memory_limit: Size | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> MergeReport:
    """Makes one file of the slices that ranks hold, in their order, or of segments."""
    given = dict(locals())
    given["files"] = _texts(files)
    return _run(_reshard.merge, given)


def recode(
    source: StrPath,
    target: StrPath,
    *,
    # Options of recode, written by tests/python/keywords_test.py --bless.
    force: bool | None = None,
    resume: bool | Literal["verify"] | None = None,
    format: Literal["ckpt", "safetensors"] | None = None,
    files: str | None = None,
    key_file: StrPath | None = None,
    key_env: str | None = None,
    encrypt: Literal["AES-GCM", "AES-CBC", "SM4-CBC"] | None = None,
    encrypt_key_file: StrPath | None = None,
    encrypt_key_env: str | None = None,
    decrypt: bool | None = None,
    crc: bool | None = None,
    rename: NameMap | None = None,
    name_rules: str | None = None,
    unmatched: Literal["copy", "error"] | None = None,
    no_checksum: bool | None = None,
    retries: int | None = None,
    # Its own.
    jobs: int | None = None,
    progress: ProgressChoice = None,
    cancel: Event | None = None,
) -> RecodeReport:
    """Writes each file in the other format, or a .ckpt file changed, and cuts no tensors.

    `source` is a file, or a folder. In a folder it reads all files of the other `format`. Without
    `format`, or if there are none, `crc`, `encrypt`, `decrypt` and `rename` change .ckpt files.
    `files`, a regular expression, restricts the files to matching names.
    """
    return _run(_reshard.recode, dict(locals()))


def source_ranks(
    rank: int, *, src_strategy: StrPath | None = None, dst_strategy: StrPath | None = None
) -> list[int]:
    """Returns the source ranks that target rank `rank` needs, ascending. None: no strategy."""
    return _errors.call(
        {}, _reshard.source_ranks, rank, encode(src_strategy), encode(dst_strategy)
    )


def all_source_ranks(
    *, src_strategy: StrPath | None = None, dst_strategy: StrPath | None = None
) -> Iterator[tuple[int, list[int]]]:
    """Returns each target rank, ascending, with the source ranks that it needs."""
    return iter(
        _errors.call(
            {}, _reshard.all_source_ranks, encode(src_strategy), encode(dst_strategy)
        )
    )
