"""Results of the calls, with the names of the command line's JSON. Their fields are in `_fields`;
this file has their additional methods."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeVar

from . import _errors, _fields, _modules, _reshard
from ._guards import is_tuple
from ._paths import StrPath, encode


def size_in_words(count: float) -> str:
    """A number of bytes, such as "1.1 MiB"."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"


# Fields of the reports of shares. What is counted in publication, one share counts for all.
_SUMS = ("bytes_read", "bytes_written", "crc_files", "crc_bytes", "files_kept")
_GREATEST = (
    "anonymous_peak",
    "memory_peak",
    "memory_planned",
    "pruned",
    "seconds",
    "values_lost",
    "values_zeroed",
)

T = TypeVar("T")


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _sum(parts: list[Any]) -> Any:
    """The sum of results of one kind, field by field; None of none."""
    if not parts:
        return None
    sums: dict[str, Any] = {}
    for name in parts[0].__match_args__:
        values = [getattr(part, name) for part in parts]
        sums[name] = sum(values[1:], start=values[0])  # numbers, or tuples
    return parts[0].__replace__(**sums)


class ConvertReport(_fields.ConvertReportFields):
    @property
    def published(self) -> bool:
        """Whether the whole set is in place. For a share: whether it put the set there or found it
        there. If several shares end side by side, one of them put it there."""
        return self.shard is None or self.shard.published

    @staticmethod
    def of_shares(reports: Iterable[ConvertReport]) -> ConvertReport:
        """The report of a conversion, of the reports of its shares: the sums of bytes, files and
        work, the most memory and time, and each warning once. Without `shard` once the set is
        published."""
        shares = sorted(reports, key=lambda report: report.shard.index if report.shard else 0)
        if not shares:
            raise ValueError("of_shares: expected one report or more")
        sizes: dict[str, int] = {}  # a file may be divided among shares
        for file in (file for share in shares for file in share.files):
            sizes[file.path] = sizes.get(file.path, 0) + file.size
        last = max(shares, key=lambda share: share.published)
        # The others follow the plan of one that has looked at the whole source.
        planned = next((share for share in shares if share.largest), last)
        whole: ConvertReport = planned.__replace__(
            files=tuple(_fields.WrittenFile(path, sizes[path]) for path in sizes),
            source_ranks=tuple(sorted({rank for share in shares for rank in share.source_ranks})),
            io=_sum([share.io for share in shares]),
            replicas=_sum([share.replicas for share in shares if share.replicas is not None]),
            sample=next((share.sample for share in shares if share.sample is not None), None),
            already_published=all(share.already_published for share in shares),
            completed_earlier_run=any(share.completed_earlier_run for share in shares),
            shard=None if last.published else last.shard,
            warnings=_once(warning for share in shares for warning in share.warnings),
            notes=_once(note for share in shares for note in share.notes),
            **{name: max(getattr(share, name) for share in shares) for name in _GREATEST},
            **{name: sum(getattr(share, name) for share in shares) for name in _SUMS},
        )
        return whole


class PlanReport(_fields.PlanReportFields):
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


class VerifyReport(_fields.VerifyReportFields):
    """The result of verify. Damage is a result: ask `ok`."""

    @property
    def ok(self) -> bool:
        return self.equal


class PageReport(_fields.PageReportFields):
    """An HTML page that was written; a notebook shows it."""

    def _repr_html_(self) -> str:
        with open(self.output, encoding="utf-8") as page:
            content = _modules.load("html").escape(page.read())
        return f'<iframe srcdoc="{content}" width="100%" height="600" sandbox></iframe>'


class Layout(_fields.LayoutFields):
    """How a strategy cuts a parameter (docs/reference/layouts.md)."""

    def box(self, shape: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Returns offsets and sizes of a rank's part in a full tensor of this shape. The rank
        counts within its stage."""
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


class Strategy(_fields.StrategyFields):
    """A strategy that was read. A call takes it in place of its path, and reads the file again."""

    def __fspath__(self) -> str:
        return self.path

    @functools.cached_property
    def _by_stage_and_name(self) -> dict[tuple[int, str], Layout]:
        return {(layout.stage, layout.name): layout for layout in self.parameters}

    def layout(self, name: str, stage: int = 0) -> Layout | None:
        """The layout of a parameter, or None if the strategy has none for it."""
        return self._by_stage_and_name.get((stage, name))


def read_strategy(path: StrPath) -> Strategy:
    """Reads a strategy file, or a folder of stage files."""
    words = {"source.strategy": "strategy"}
    return _errors.call(words, _reshard.read_strategy, encode(path), words)
