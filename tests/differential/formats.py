"""One case through MindSpore and reshard, where a container other than `.ckpt`
is read or written: rank folders, unified folders, Hugging Face folders."""

import random

import mindspore_side
from cases import DTYPES
from comparison import PREFIX, Comparison
from layouts import box, shard
from writers import huggingface_folder, read_safetensors, write_safetensors

import numpy as np

# The ways from a source to a target; some oftener.
WAYS = ("safetensors to safetensors", "safetensors to ckpt",
        "ckpt to safetensors", "safetensors to unified", "ckpt to unified",
        "safetensors to huggingface", "ckpt to huggingface",
        "unified to ranks", "huggingface to ranks", "without redundancy")
METADATA = {"format": "ms"}


def is_for_formats(case):
    """Whether MindSpore converts a case in safetensors files as reshard does:
    it has neither single ranks nor one stage of several there."""
    return not case.one_stage_alone and not any(
        side and side.first_stage for side in (case.source, case.target))


def _reads(path):
    """Returns (dtype, dims, content) by name."""
    rows = (read_safetensors(path) if path.suffix == ".safetensors"
            else mindspore_side.load(path))
    return {name: (dtype, [] if dims == [0] and content else list(dims),
                   content) for name, dtype, dims, content in rows}


class FormatComparison(Comparison):
    """A case that is converted `way`, drawn from `rng`.

    Where MindSpore's output has other values than the cuts of the full tensors,
    and reshard's has these, it is counted in `mindspore_wrong`, no failure.
    """

    def __init__(self, case, folder, reshard, seed):
        super().__init__(case, folder, reshard)
        self.rng = random.Random(f"{seed}/way")
        self.way = self.rng.choice(WAYS)
        self.container = "ckpt" if self.way.startswith("ckpt") else "safetensors"
        self.mindspore_wrong = 0

    def run(self):
        for label, side in (("src", self.case.source),
                            ("dst", self.case.target)):
            if side:
                self._write_strategy(label, side)
        self._write_sources()
        start, _, end = self.way.partition(" to ")
        if start in ("unified", "huggingface"):
            self._folder_to_ranks(start)
        elif end == "unified":
            self._to_unified()
        elif end == "huggingface":
            self._to_huggingface()
        elif self.way == "without redundancy":
            self._without_redundancy()
        else:
            self._ranks_to_ranks(end)
        return [f"{self.way}: {failure}" for failure in self.failures]

    @property
    def _pipelines(self):
        return any(side and len(side.stages) > 1
                   for side in (self.case.source, self.case.target))

    def _write_sources(self):
        if self.container == "ckpt":
            super()._write_sources()
            return
        for rank, rows in self.case.files.items():
            folder = self.folder / "src" / f"rank_{rank}"
            write_safetensors(folder / "net-1_100.safetensors", rows, METADATA)
            if self.case.older_files:
                write_safetensors(folder / "net-0_100.safetensors", rows[:1],
                                  METADATA)

    def _files_under(self, folder):
        return {str(file.relative_to(folder)): file
                for file in folder.rglob("*")
                if file.suffix in (".ckpt", ".safetensors", ".json")
                and file.name != "manifest.json"}

    def _same_folders(self, expected, actual, exact, cuts=True):
        """Compares two folders: bytes, or the tensors of each file."""
        wanted, found = self._files_under(expected), self._files_under(actual)
        if set(wanted) != set(found):
            self.failures.append(
                f"{actual.name}: missing {sorted(set(wanted) - set(found))}, "
                f"not expected {sorted(set(found) - set(wanted))}")
        for name in sorted(set(wanted) & set(found)):
            if wanted[name].read_bytes() == found[name].read_bytes():
                continue
            if wanted[name].suffix == ".json":
                if exact:
                    self.failures.append(f"{found[name]} differs from "
                                         f"{wanted[name]}")
                continue
            self._compare_tensors(wanted[name], found[name], exact, cuts)

    def _compare_tensors(self, expected, actual, exact, cuts):
        theirs, ours = _reads(expected), _reads(actual)
        if theirs == ours:
            if exact:
                self.failures.append(f"{actual} has the tensors of {expected} "
                                     "in other bytes")
            return
        before = self.mindspore_wrong
        for name in sorted({*theirs, *ours}):
            if theirs.get(name) == ours.get(name):
                continue
            cut = self._cut_bytes(expected, name) if cuts else None
            of_us = ours.get(name, (None, None, None))[2]
            of_them = theirs.get(name, (None, None, None))[2]
            if cut is not None and of_us == cut and of_them != cut:
                self.mindspore_wrong += 1
            elif cut is None and cuts and self._pipelines:
                # What no strategy has comes from whichever stage ends last.
                self.mindspore_wrong += 1
            else:
                self.failures.append(
                    f"{actual}: {name} is not as in {expected}: "
                    f"{[side.get(name, ('none',))[:2] for side in (theirs, ours)]}"
                    f"{', MindSpore is right' if of_them == cut else ''}")
        if self.mindspore_wrong == before and not self.failures:
            self.failures.append(f"{actual} differs from {expected}")

    def _check_cuts(self, out):
        """Every converted tensor is the cut of its full one."""
        for path in out.glob("rank_*/*"):
            for name, (dtype, _, content) in _reads(path).items():
                cut = self._cut_bytes(path, name)
                if cut is not None and cut != content:
                    self.failures.append(f"{path}: {name} ({dtype}) is not the "
                                         "cut of the full tensor")

    def _ranks_to_ranks(self, end):
        source, expected = self.folder / "src", self.folder / "expected"
        paths = self.strategies.get("src"), self.strategies.get("dst")
        if self.container == "ckpt":
            converted = self.folder / "as_ckpt"
            mindspore_side.convert(source, converted, PREFIX, *paths)
            mindspore_side.recode(converted, expected, "safetensors")
        else:
            mindspore_side.convert_safetensors(source, expected, PREFIX, *paths,
                                               end)
        out = self.folder / "out"
        if self._convert(source, out, self.strategies, "--format", end):
            exact = end == "safetensors" or not self._pipelines
            self._same_folders(expected, out, exact)
            self._check_cuts(out)

    def _source_options(self):
        return self._strategy_options(
            {label: path for label, path in self.strategies.items()
             if label == "src"})

    def _to_full(self, end, *options):
        out = self.folder / end
        done = self._run("convert", self.folder / "src", out,
                         *self._source_options(), "--format", end, *options)
        return out if done is not None else None

    def _to_unified(self):
        if not self.case.source:
            raise mindspore_side.Refused("unify needs a strategy")
        size = self.rng.choice((200, 2000, 20000, 1 << 30))
        source = self.folder / "src"
        if self.container == "ckpt":
            source = self.folder / "recoded"
            mindspore_side.recode(self.folder / "src", source, "safetensors")
        expected = self.folder / "expected"
        mindspore_side.unify(source, self.strategies["src"], expected, size)
        out = self._to_full("unified", "--part-size", str(size))
        if not out:
            return
        # Ranks are taken in the order of the directory there, and ties of size
        # in the order in which a file has its tensors.
        # It has rank 0's shard of accumulated gradients, which are left out here.
        gradients = any(row[0].startswith("accu_grads")
                        for rows in self.case.files.values() for row in rows)
        if (len(self.case.source.stages) == 1 and self.container != "ckpt"
                and not gradients):
            self._same_folders(expected, out, True, cuts=False)
        else:
            self._same_union(expected, out)

    def _union(self, folder):
        return {name: tensor
                for file in self._files_under(folder).values()
                if file.suffix == ".safetensors"
                for name, tensor in _reads(file).items()}

    def _same_union(self, expected, actual):
        theirs, ours = self._union(expected), self._union(actual)
        for name in sorted({*theirs, *ours}):
            if theirs.get(name) == ours.get(name) or (
                    name not in ours and name.startswith("accu_grads")):
                continue
            full = self.case.full.get(name)
            if full is not None and name in self.case.source.names():
                right = np.ascontiguousarray(full).tobytes()
                if name in ours and ours[name][2] == right:
                    self.mindspore_wrong += 1
                    continue
            elif self._pipelines:
                # What no strategy has comes from whichever stage ends last, or
                # is lost where only later stages have it.
                self.mindspore_wrong += 1
                continue
            self.failures.append(f"{actual}: {name} is not as in {expected}")

    def _to_huggingface(self):
        """The order is that of MindSpore's full `.ckpt`."""
        size = self.rng.choice((200, 2000, 20000, 1 << 30))
        full = self.folder / "full"
        source = self.folder / "src"
        paths = self.strategies.get("src"), None
        if not paths[0]:
            raise mindspore_side.Refused("nothing to do without a strategy")
        if self.container == "ckpt":
            mindspore_side.convert(source, full, PREFIX, *paths)
        else:
            mindspore_side.convert_safetensors(source, full, PREFIX, *paths,
                                               "ckpt")
        rows = mindspore_side.load(full / "rank_0" / f"{PREFIX}0.ckpt")
        out = self._to_full("huggingface", "--shard-size", str(size))
        if not out:
            return
        expected = self.folder / "expected"
        expected.mkdir()
        for name, content in huggingface_folder(rows, size).items():
            (expected / name).write_bytes(content)
        if self._pipelines:
            self._same_union(expected, out)
        else:
            self._same_folders(expected, out, True, cuts=False)

    def _folder_to_ranks(self, start):
        """A folder that reshard writes, cut by MindSpore and by reshard."""
        if not self.case.target or len(self.case.target.stages) > 1:
            raise mindspore_side.Refused("one stage is distributed")
        rows = [(name, next(row[1] for rows in self.case.files.values()
                            for row in rows if row[0] == name),
                 list(tensor.shape), np.ascontiguousarray(tensor).tobytes())
                for name, tensor in self.case.full.items()
                # Others of a map are not written there.
                if name in self.case.target.stages[0]]
        if not rows:
            raise mindspore_side.Refused("no tensor")
        whole = self.folder / "whole" / "rank_0" / "net.safetensors"
        write_safetensors(whole, rows, METADATA)
        folder = self.folder / start
        size = "--part-size" if start == "unified" else "--shard-size"
        if self._run("convert", whole.parents[1], folder, "--format", start,
                     size, str(self.rng.choice((200, 2000, 1 << 30)))) is None:
            return
        end = self.rng.choice(("safetensors", "ckpt"))
        given = folder
        if start == "huggingface":
            # It does not read the index, and takes a lone file.
            given = self.folder / "lone"
            write_safetensors(given / "model.safetensors", rows, METADATA)
        expected = self.folder / "expected"
        mindspore_side.distribute(given, self.strategies["dst"], expected, end)
        out = self.folder / "out"
        if self._run("convert", folder, out, "--dst-strategy",
                     self.strategies["dst"], "--format", end, "--names",
                     "rank_{rank}/net.{ext}") is None:
            return
        self._check_cuts_of_full(out, rows)
        if start == "unified":
            self._same_folders(expected, out, True)

    def _check_cuts_of_full(self, out, rows):
        full = {row[0]: row for row in rows}
        for path in out.glob("rank_*/*"):
            for name, (dtype, _, content) in _reads(path).items():
                layouts = self.case.target.stages[0]
                if name not in layouts:
                    continue
                _, dtype, dims, whole = full[name]
                tensor = np.frombuffer(whole, DTYPES[dtype]).reshape(dims)
                rank = int(path.parent.name.removeprefix("rank_"))
                cut = np.ascontiguousarray(shard(tensor, layouts[name], rank))
                if cut.tobytes() != content:
                    self.failures.append(f"{path}: {name} is not the cut of "
                                         "the full tensor")

    def _box(self, stage, rank, name):
        """Returns what only shards of one box have in common, or None."""
        layout = self.case.source.stages[stage].get(name)
        if layout is None or name not in self.case.full:
            return None
        # A shard that is copied as it stands is one certain rank's.
        if self.case.target and name not in self.case.target.names():
            return None
        return box(layout, rank % self.case.source.devices)

    def _without_redundancy(self):
        """One rank, at random, keeps each group of equal shards."""
        if not self.case.source:
            raise mindspore_side.Refused("nothing is redundant")
        full, thin = self.folder / "src", self.folder / "thin"
        keep = {}
        for rank, rows in self.case.files.items():
            stage = rank // self.case.source.devices
            for row in rows:
                box = self._box(stage, rank, row[0])
                if box is not None:
                    keep.setdefault((stage, row[0], box), []).append(rank)
        keep = {key: self.rng.choice(ranks) for key, ranks in keep.items()}
        for rank, rows in self.case.files.items():
            stage = rank // self.case.source.devices
            rows = [row for row in rows
                    if keep.get((stage, row[0], self._box(stage, rank, row[0])),
                                rank) == rank]
            write_safetensors(thin / f"rank_{rank}" / "net-1_100.safetensors",
                              rows, {**METADATA, "remove_redundancy": "True"})
        outs = []
        for source in (full, thin):
            out = self.folder / f"of_{source.name}"
            if self._convert(source, out, self.strategies):
                outs.append(out)
        if len(outs) == 2:
            self._same_folders(*outs, True)
            self._check_cuts(outs[1])
