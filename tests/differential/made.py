"""Strategies that reshard makes from random specifications: MindSpore reads
them and converts with them, and strategies that are inferred mean the same."""

import filecmp
import json
import math
import random
import subprocess

import mindspore_side
from cases import random_content, row
from writers import write_checkpoint

TIMEOUT = 300
PREFIX = "out"


def _random_cuts(rng, devices, dimensions):
    """Returns cuts, optimizer shards, and the rest of the devices' factors."""
    cuts, left = [], devices
    for _ in range(dimensions):
        cuts.append(rng.choice([n for n in range(1, left + 1)
                                if left % n == 0]))
        left //= cuts[-1]
    shards = rng.choice([n for n in range(1, left + 1) if left % n == 0])
    return cuts, shards if dimensions else 1


class Made:
    """One specification in one folder; failures are lines of text."""

    def __init__(self, name, seed, folder, reshard):
        self.rng = random.Random(f"{seed}/{name}")
        self.folder = folder
        self.reshard = reshard
        self.failures = []

    def run(self):
        rng = self.rng
        devices = rng.choice((2, 3, 4, 6, 8, 12, 56))
        entries, rows = [], []
        for i in range(rng.randint(1, 3)):
            dimensions = rng.randint(1, 3)
            cuts, shards = _random_cuts(rng, devices, dimensions)
            shape = [cut * (shards if d == 0 else 1) * rng.randint(1, 3)
                     for d, cut in enumerate(cuts)]
            entries.append({"parameter": f"layer{i}.*", "cuts": cuts,
                            "optimizer_shards": shards})
            for name in (f"layer{i}.weight", f"adam_m.layer{i}.weight"):
                rows.append(row(name, "Float32",
                                random_content(rng, "Float32", shape)))
        source = self.folder / "src" / "rank_0" / "full.ckpt"
        write_checkpoint(source, rows)
        spec = self.folder / "spec.json"
        spec.write_text(json.dumps({"devices": devices,
                                    "parameters": entries}))
        form = rng.choice(("ckpt", "json"))
        strategy = self.folder / f"made.{form}"
        if not self._reshard("strategy", "make", spec, strategy, "--from",
                             source):
            return self.failures
        self._compare(devices, rows, strategy)
        inferred = self.folder / f"inferred.{form}"
        if self._reshard("strategy", "infer", self.folder / "out", inferred,
                         "--reference", source):
            self._back(inferred, source)
        return self.failures

    def _compare(self, devices, rows, strategy):
        known = mindspore_side.searched(strategy)
        for name in {name for name, *_ in rows} ^ set(known):
            self.failures.append(f"MindSpore finds other layouts: {name}")
        for name, layout in known.items():
            if math.prod(layout.dev_matrix[0].dim) != devices:
                self.failures.append(f"{name}: not of {devices} devices")
        mindspore_side.convert(self.folder / "src", self.folder / "expected",
                               PREFIX, None, strategy)
        self._reshard("convert", self.folder / "src", self.folder / "out",
                      "--dst-strategy", strategy, "--prefix", PREFIX)
        for rank in range(devices):
            path = f"rank_{rank}/{PREFIX}{rank}.ckpt"
            out = self.folder / "out" / path
            if not out.exists() or not filecmp.cmp(
                    self.folder / "expected" / path, out, shallow=False):
                self.failures.append(f"{path} differs from MindSpore's")

    def _back(self, strategy, source):
        """Full tensors by the strategy that was inferred."""
        back = self.folder / "back"
        if self._reshard("convert", self.folder / "out", back,
                         "--src-strategy", strategy, "--prefix", PREFIX) \
                and not filecmp.cmp(back / "rank_0" / f"{PREFIX}0.ckpt",
                                    source, shallow=False):
            self.failures.append("the inferred strategy gives other tensors")

    def _reshard(self, *arguments):
        command = [str(self.reshard), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT, check=False)
        if done.returncode:
            self.failures.append(f"exit {done.returncode}: "
                                 f"{' '.join(command)}\n{done.stderr.strip()}")
        return done.returncode == 0
