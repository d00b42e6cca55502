"""Runs one case through MindSpore and reshard and compares what they write."""

import filecmp
import subprocess
from pathlib import Path

import mindspore_side
from cases import DTYPES
from writers import strategy_json, strategy_protobuf, write_checkpoint

import numpy as np

PREFIX = "out"
# Seconds that no run of reshard takes, the largest case included.
TIMEOUT = 300


class Comparison:
    """One case in one folder; failures are collected as lines of text."""

    def __init__(self, case, folder, reshard):
        self.case = case
        self.folder = Path(folder)
        self.reshard = reshard
        self.failures = []
        self.expected = self.folder / "expected"
        # Strategy options of reshard: files, and (pipelines) stage folders.
        self.strategies = {}
        self.stage_folders = {}

    def run(self):
        """Returns the failures. Raises mindspore_side.Refused."""
        self._write_sources()
        for label, side in (("src", self.case.source),
                            ("dst", self.case.target)):
            if side:
                self._write_strategy(label, side)
        if self.case.ranks is None:
            self._compare_all()
        else:
            self._compare_by_rank()
        self._compare_rank_lists()
        return self.failures

    # What both sides start from.

    def _write_sources(self):
        for rank, rows in self.case.files.items():
            folder = self.folder / "src" / f"rank_{rank}"
            write_checkpoint(folder / "net-1_100.ckpt", rows,
                             self.case.value_limit, self.case.crc)
            if self.case.older_files:
                write_checkpoint(folder / "net-0_100.ckpt", rows[:1])
                (folder / "net-graph.meta").write_bytes(b"no checkpoint")

    def _stage_bytes(self, side, number, layouts):
        nodes = [(f"MatMul-op{number}_{i}", number, [[side.devices, 1], [1]])
                 for i in range(2)]
        write = strategy_json if side.form == "json" else strategy_protobuf
        return write(nodes, layouts, self.case.shapes)

    def _write_strategy(self, label, side):
        path = self.folder / f"{label}_strategy.{side.form}"
        self.strategies[label] = path
        if not side.merged:
            path.write_bytes(self._stage_bytes(side, side.first_stage,
                                               side.stages[0]))
            return
        folder = self.folder / f"{label}_stages"
        folder.mkdir()
        self.stage_folders[label] = folder
        files = []
        for number, layouts in enumerate(side.stages):
            for copy in range(side.copies):
                # Later stages first, for a reader that trusts names.
                order = 10 * (len(side.stages) - number) + copy
                files.append(folder / f"strategy_rank_{order}.{side.form}")
                files[-1].write_bytes(self._stage_bytes(side, number, layouts))
        mindspore_side.merge(files, path)
        merged = self.folder / f"{label}_merged_by_reshard.{side.form}"
        if self._merge_stages(folder, merged):
            self._same_file(path, merged, f"{label} strategy merged")

    # reshard, and what it prints.

    def _run(self, *arguments):
        """Runs reshard; returns its standard output, or None if it failed."""
        command = [str(self.reshard), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  errors="replace", timeout=TIMEOUT,
                                  check=False)
        except subprocess.TimeoutExpired as error:
            self.failures.append(str(error))
            return None
        if done.returncode == 0:
            return done.stdout
        self.failures.append(f"exit {done.returncode}: {' '.join(command)}\n"
                             f"{done.stderr.strip()}")
        return None

    def _merge_stages(self, folder, out):
        return self._run("strategy", "merge", folder, out) is not None

    def _strategy_options(self, paths):
        options = []
        for label, path in paths.items():
            options += [f"--{label}-strategy", path]
        return options

    def _convert(self, source, out, paths, *options):
        return self._run("convert", source, out, *self._strategy_options(paths),
                         "--prefix", PREFIX, *options) is not None

    # The comparisons.

    def _compare_all(self):
        mindspore_side.convert(self.folder / "src", self.expected, PREFIX,
                               self.strategies.get("src"),
                               self.strategies.get("dst"))
        runs = {"out": self.strategies}
        if self.stage_folders:
            runs["out_of_folders"] = {**self.strategies, **self.stage_folders}
        for name, paths in runs.items():
            out = self.folder / name
            if self._convert(self.folder / "src", out, paths):
                self._same_outputs(out)

    def _compare_by_rank(self):
        """Converts single ranks: all into one folder, and each one from no more
        source ranks than reshard's own list names."""
        out = self.folder / "out"
        for rank in self.case.ranks:
            wanted = mindspore_side.rank_list(rank, self.strategies.get("src"),
                                              self.strategies.get("dst"))
            files = {found: self._source_file("src", found) for found in wanted}
            path = self.expected / f"rank_{rank}" / f"{PREFIX}{rank}.ckpt"
            path.parent.mkdir(parents=True)
            mindspore_side.convert_rank(rank, files, path,
                                        self.strategies.get("src"),
                                        self.strategies.get("dst"))
            least = self._least_list(rank)
            if least is None:
                continue
            for found in least:
                link = self._source_file(f"src_for_{rank}", found)
                link.parent.mkdir(parents=True)
                link.symlink_to(self._source_file("src", found))
            out_alone = self.folder / f"out_of_{rank}"
            if self._convert(self.folder / f"src_for_{rank}", out_alone,
                             self.strategies, "--rank", rank):
                self._same_outputs(out_alone, rank)
            self._convert(self.folder / "src", out, self.strategies,
                          "--rank", rank)
        self._same_outputs(out)

    def _source_file(self, folder, rank):
        return self.folder / folder / f"rank_{rank}" / "net-1_100.ckpt"

    def _least_list(self, rank):
        text = self._run("ranks", rank,
                         *self._strategy_options(self.strategies))
        return None if text is None else [int(line) for line in text.split()]

    def _compare_rank_lists(self):
        if self.case.one_stage_alone:
            return
        target = self.case.target
        if target and target.devices == 1 and len(target.stages) > 1:
            # MindSpore takes the global rank for the local one there.
            return
        for rank in self.case.ranks or range(min(self.case.target_ranks, 3)):
            least = self._least_list(rank)
            wanted = mindspore_side.rank_list(rank, self.strategies.get("src"),
                                              self.strategies.get("dst"))
            if least is not None and not set(least) <= set(wanted):
                self.failures.append(f"ranks for {rank}: {least}, which is not "
                                     f"within MindSpore's {sorted(wanted)}")

    def _same_file(self, expected, actual, what):
        if filecmp.cmp(expected, actual, shallow=False):
            return True
        self.failures.append(f"{what}: {actual} differs from {expected}")
        return False

    def _same_outputs(self, out, rank="*"):
        expected, actual = (
            {str(file.relative_to(folder))
             for file in folder.glob(f"rank_{rank}/*")}
            for folder in (self.expected, out))
        if expected != actual:
            self.failures.append(
                f"{out.name}: missing {sorted(expected - actual)}, "
                f"not expected {sorted(actual - expected)}")
        for name in sorted(expected & actual):
            if self._same_file(self.expected / name, out / name, "output"):
                if self.case.load:
                    self._check_values(out / name)
            else:
                self._explain(self.expected / name, out / name)

    # Values against numpy's cut of the full tensors.

    def _cut_bytes(self, path, name):
        rank = int(path.parent.name.removeprefix("rank_"))
        part = self.case.expected_shard(rank, name)
        return None if part is None else np.ascontiguousarray(part).tobytes()

    def _check_values(self, path):
        """MindSpore loads an output; its values are those of the tensors."""
        for name, dtype, dims, content in mindspore_side.load(path):
            wanted = self._cut_bytes(path, name)
            size = np.dtype(DTYPES[dtype]).itemsize
            if len(content) != size * int(np.prod(dims, dtype=int)):
                self.failures.append(f"{path}: {name} loads as {dtype}{dims} "
                                     f"with {len(content)} bytes")
            elif wanted is not None and content != wanted:
                self.failures.append(f"{path}: {name} loads with other values "
                                     "than the full tensor's")

    def _explain(self, expected, actual):
        """Says where two files differ, and which of them has the tensors."""
        try:
            rows = [mindspore_side.load(path) for path in (expected, actual)]
        except ValueError as error:
            self.failures.append(f"  MindSpore cannot load it: {error}")
            return
        names = [[row[0] for row in side] for side in rows]
        if names[0] != names[1]:
            self.failures.append(f"  MindSpore's parameters: {names[0]}\n"
                                 f"  reshard's parameters:   {names[1]}")
        elif rows[0] == rows[1]:
            self.failures.append("  MindSpore loads both alike")
        of_reshard = {row[0]: row for row in rows[1]}
        for row in rows[0]:
            other = of_reshard.get(row[0], row)
            if other == row:
                continue
            wanted = self._cut_bytes(expected, row[0])
            right = ("copied" if wanted is None else
                     "MindSpore is right" if wanted == row[3] else
                     "reshard is right" if wanted == other[3] else
                     "neither is right")
            self.failures.append(
                f"  {row[0]}: MindSpore has {row[1]}{row[2]}, reshard "
                f"{other[1]}{other[2]}; {right}; source layouts "
                f"{self._layouts(self.case.source, row[0])}, target layouts "
                f"{self._layouts(self.case.target, row[0])}")

    @staticmethod
    def _layouts(side, name):
        return [stage.get(name) for stage in side.stages] if side else None
