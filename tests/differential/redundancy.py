#!/usr/bin/env python3
"""Compares which rank keeps which shard without redundancy with the installed MindSpore.

A random conversion to ranks is written whole and with `--remove-redundancy`. Each rank's file has
to hold what MindSpore's remove_param_redundancy leaves it, with the bytes of the whole file, and to
say so; MindSpore has to load it. `reshard diff` has to find both sets equal. MindSpore reads no
nested tensor maps here. Of some optimizer shards it makes other groups than its own conversion, or
fails, as for a step that does not divide the devices: then each shard has to be in one file of the
ranks that hold it.
"""

import json
import struct
import subprocess
import sys

import mindspore_side
from case_loop import run
from cases import random_case
from comparison import Comparison
from layouts import box
from writers import read_safetensors


def _metadata(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + size]).get("__metadata__", {})


def _true_groups(layout, first_rank):
    groups = {}
    for local in range(layout.devices):
        groups.setdefault(box(layout, local), []).append(first_rank + local)
    return sorted(map(tuple, groups.values()))


class _Redundancy(Comparison):
    def run(self):
        self._write_sources()
        for label, side in (("src", self.case.source), ("dst", self.case.target)):
            if side:
                self._write_strategy(label, side)
        whole, thin = self.folder / "whole", self.folder / "thin"
        options = ["--format", "safetensors", "--unmatched", "copy"]
        if not self._convert(self.folder / "src", whole, self.strategies, *options):
            return self.failures
        if not self._convert(self.folder / "src", thin, self.strategies, *options,
                             "--remove-redundancy"):
            return self.failures
        for number, layouts in enumerate(self.case.target.stages):
            self._check_stage(whole, thin, number, layouts)
        self._run("verify", thin)
        self._run("verify", thin, "--against", self.folder / "src")
        # Ranks may hold other values of a parameter that only the target strategy has.
        names = {name for stage in self.case.target.stages for name in stage}
        if not self.case.source or names <= self.case.source.names():
            self._diff(whole, thin)
        return self.failures

    def _diff(self, whole, thin):
        strategy = self.strategies["dst"]
        done = subprocess.run(
            [self.reshard, "diff", whole, thin, "--a-strategy", strategy, "--b-strategy", strategy,
             "-q"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.failures.append(f"diff: exit {done.returncode}: {done.stdout}{done.stderr}")

    def _check_stage(self, whole, thin, number, layouts):
        devices = self.case.target.devices
        first = number * devices
        of_mindspore = {name: layout for name, layout in layouts.items() if not layout.nested}
        try:
            groups, kept = mindspore_side.kept_without_redundancy(
                {name: (list(layout.dev_matrix), list(layout.tensor_map), layout.opt_step,
                        layout.opt_size) for name, layout in of_mindspore.items()}, first)
        except mindspore_side.Refused:
            of_mindspore, groups, kept = {}, {}, {}
        alike = len(of_mindspore) == len(layouts) and all(
            sorted(groups[name]) == _true_groups(layout, first)
            for name, layout in layouts.items())
        holders = {}
        for rank in range(first, first + devices):
            files = [folder / f"rank_{rank}" / f"out{rank}.safetensors"
                     for folder in (whole, thin)]
            rows = [{row[0]: row for row in read_safetensors(file)} for file in files]
            if any(rows[0].get(name) != row for name, row in rows[1].items()):
                self.failures.append(f"rank {rank}: other bytes than with redundancy")
            if _metadata(files[1]).get("remove_redundancy") != "True":
                self.failures.append(f"rank {rank}: does not say that redundancy is removed")
            if set(rows[0]) - set(layouts) - set(rows[1]):
                self.failures.append(f"rank {rank}: lacks parameters without a layout")
            wanted = {name for name in rows[0]
                      if name not in layouts or not self._is_cut(name)
                      or name in kept.get(rank, ())}
            if alike and wanted != set(rows[1]):
                self.failures.append(f"rank {rank}: MindSpore keeps {sorted(wanted)}, reshard "
                                     f"{sorted(rows[1])}")
            if rows[1] and mindspore_side.load_without_redundancy(files[1]) != set(rows[1]):
                self.failures.append(f"rank {rank}: MindSpore loads other names")
            for name in set(rows[0]) & set(layouts):
                group = holders.setdefault((name, box(layouts[name], rank - first)), [])
                if name in rows[1]:
                    group.append(rank)
        _Redundancy.compared += alike
        for (name, _), ranks in holders.items():
            if len(ranks) != 1 and self._is_cut(name):
                self.failures.append(f"{name}: the ranks {ranks} keep one shard")

    def _is_cut(self, name):
        return not self.case.source or name in self.case.source.names()

    compared = 0


def check(rng, reshard, folder):
    """Runs one case; returns what is wrong with it, if anything."""
    while True:
        case = random_case(str(rng.random()), "redundancy")
        if case.target and not case.one_stage_alone and not (case.source and case.source.first_stage):
            break
    case.ranks = None
    try:
        return "\n".join(_Redundancy(case, folder, reshard).run())
    except mindspore_side.Refused as refused:
        return f"MindSpore refuses: {refused}"


if __name__ == "__main__":
    CODE = run(__doc__, check)
    print(f"{_Redundancy.compared} stages compared with MindSpore")
    sys.exit(CODE if _Redundancy.compared else 1)
