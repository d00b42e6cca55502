#!/usr/bin/env python3
"""Converts random honest checkpoints with the default options, and with all
checks off: both have to end with exit code 0 and write the same bytes, and
these have to be right. MindSpore is not needed."""

import contextlib
import dataclasses
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import case_loop
import cases
import journeys
import readers
import training as trainings
from ciphers import MODES
from journeys import Choice, run
from layouts import box
from writers import write_checkpoint

MAX_LINES = 8
# The cases that MindSpore and reshard are compared with, one of so many.
BARE_EVERY = 5


def checks_off(reshard):
    """Returns the options that switch checks off, by command."""
    commands = {"convert": ["--check-replicas=none", "--unmatched=copy",
                            "--no-checksum", "--partial"],
                "recode": ["--no-checksum", "--partial"],
                "merge": ["--unmatched=copy", "--partial"]}
    return {command: [option for option in options if option.split("=")[0]
                      in run(reshard, command, "--help").stdout]
            for command, options in commands.items()}


class Failed(Exception):
    """A run ended otherwise than it has to."""


class Honest:
    """One honest journey in one folder."""

    def __init__(self, seed, folder, reshard, off):
        self.rng = random.Random(seed)
        self.folder = folder
        self.reshard = reshard
        self.off = off
        self.failures = []

    def run(self):
        way = self.rng.choices(
            (self.convert, self.thin, self.grouped, self.twice, self.recode,
             self.merge, self.segments),
            (60, 10, 5, 6, 8, 6, 5))[0]
        try:
            way()
        except Failed as failed:
            self.failures.append(str(failed))
        return [f"{way.__name__}: {failure}" for failure in self.failures]

    def _run(self, *arguments):
        done = run(self.reshard, *arguments)
        if done.returncode:
            command = " ".join(map(str, arguments))
            raise Failed(f"exit {done.returncode}: {command}\n"
                         + "\n".join(journeys.said(done)))
        return done

    def _both(self, command, before, after):
        """Runs a command with and without its checks, into two folders."""
        off = list(self.off.get(command, ()))
        if "--crc" in after and "--no-checksum" in off:
            off.remove("--no-checksum")
        self._run(command, *before, self.folder / "checked", *after)
        self._run(command, *before, self.folder / "unchecked",
                  *(option for option in after if option != "--prune"), *off)

    def _same_bytes(self, key=None):
        checked, unchecked = (journeys.data_files(self.folder / name)
                              for name in ("checked", "unchecked"))
        for name in sorted(set(checked) ^ set(unchecked)):
            self.failures.append(f"{name} is in one of both")
        for name in sorted(set(checked) & set(unchecked)):
            files = [checked[name], unchecked[name]]
            if key and name.endswith(".ckpt"):
                same = readers.file(files[0], key) == readers.file(
                    files[1], key)
            else:
                same = files[0].read_bytes() == files[1].read_bytes()
            if not same:
                self.failures.append(f"{name} has other bytes without checks")

    # The ways.

    def convert(self):
        training = trainings.random_training(self.rng)
        store = journeys.random_store(self.rng, training)
        self._convert(training, store, [])

    def thin(self):
        """A set without redundancy."""
        training = trainings.random_training(self.rng, self.rng.choice(
            ("both", "both", "to full")))
        store = journeys.random_store(self.rng, training)
        if store.container == "safetensors":
            store.metadata = {"format": "ms", "remove_redundancy": "True"}
        if self.rng.random() < 0.4:  # then ranks may have no parameter
            self._only_in_strategy(training)
        journeys.thin_out(self.rng, training)
        self._convert(training, store, [])

    def _only_in_strategy(self, training):
        names = training.source.names()
        training.parameters = [p for p in training.parameters
                               if p.name in names]
        for rank, rows in training.files.items():
            training.files[rank] = [row for row in rows if row[0] in names]

    def grouped(self):
        """Data parallel training: files that are not there, or lack what others
        have, and lists of the ranks that hold the same."""
        rng = self.rng
        if rng.random() < 0.5:
            training = trainings.random_training(rng, "both", 4)
            groups = self._groups(training)
            store = journeys.random_store(rng, training)
            options = journeys.group_info_files(self.folder, groups)
            for group in groups:
                if len(group) > 1 and rng.random() < 0.5:
                    del training.files[group[-1]]
            training = self._with_stand_ins(training, groups)
        else:
            training = trainings.random_training(rng, "from full")
            store = dataclasses.replace(
                journeys.random_store(rng, training), container="ckpt",
                as_sources=False)
            count = rng.randrange(2, 5)
            options = journeys.group_info_files(self.folder, [range(count)])
            rows = training.files[0]
            whole = {rank: rows[rank::count] for rank in range(count)}
            self._convert(training, store, options, whole)
            return
        self._convert(training, store, options, training.written)

    @staticmethod
    def _groups(training):
        """Ranks of one stage that hold the same box of everything."""
        groups = {}
        for stage, layouts in enumerate(training.source.stages):
            for local, rank in enumerate(training.ranks_of(stage)):
                boxes = tuple(box(layout, local)
                              for name, layout in layouts.items()
                              if name in training.full)
                groups.setdefault((stage, boxes), []).append(rank)
        return list(groups.values())

    @staticmethod
    def _with_stand_ins(training, groups):
        """What conversions have to come to: each missing file as that of the
        lowest rank of its group."""
        training.written = dict(training.files)
        for group in groups:
            for rank in group:
                training.files.setdefault(rank, training.files[group[0]])
        return training

    def _convert(self, training, store, options, files=None):
        rng = self.rng
        shown = training
        if files is not None:
            shown = dataclasses.replace(training, files=files)
        source, source_options = journeys.write_store(
            rng, self.folder, store, shown)
        choice = journeys.random_choice(rng, training)
        options = [*options, *source_options, *choice.options(self.folder),
                   *journeys.strategy_arguments(self.folder, training)]
        kind, key, names, more = self._target(training, store)
        options += more
        how = rng.random()
        if how < 0.08 and kind == "ranks" and training.target_ranks > 1:
            self._in_turns(training, source, options, key)
        elif how < 0.16:
            self._in_shards(source, options)
        elif how < 0.28 and kind == "ranks":
            self._onto_older(source, options)
        else:
            self._both("convert", source, options)
        self._same_bytes(key)
        self._right(training, choice, kind, key, names)
        if rng.random() < 0.2:
            self._run("verify", self.folder / "checked",
                      *(["--key-file", self.folder / "target_key"]
                        if key else []))

    def _target(self, training, store):
        """Draws what kind of set is written."""
        rng = self.rng
        options, key, names = [], None, None
        if not training.target and rng.random() < 0.5:
            kind = rng.choice(("unified", "huggingface"))
            size = rng.choice(("700", "8K", "1M"))
            options += ["--format", kind, "--part-size" if kind == "unified"
                        else "--shard-size", size]
            if rng.random() < 0.15:
                options.append("--crc")
            return kind, key, names, options
        form = rng.choice((None, "ckpt", "safetensors"))
        if form:
            options += ["--format", form]
        is_ckpt = form == "ckpt" or not form and store.container == "ckpt"
        if is_ckpt and rng.random() < 0.2:
            key = rng.randbytes(rng.choice((16, 24, 32)))
            (self.folder / "target_key").write_bytes(key)
            options += ["--encrypt", rng.choice(list(MODES)),
                        "--encrypt-key-file", self.folder / "target_key"]
        elif rng.random() < 0.2:
            options.append("--crc")
        if rng.random() < 0.15:
            names = "rank_{rank}/new_{rank}." + (
                "ckpt" if is_ckpt else "safetensors")
            options += ["--names", names]
        elif rng.random() < 0.3:
            options += ["--prefix", "llama_"]
        return "ranks", key, names, options

    def _in_turns(self, training, source, options, key):
        """Each rank, or two lists of ranks, into one set."""
        ranks = list(range(training.target_ranks))
        cut = self.rng.randrange(1, len(ranks))
        for part in (ranks[:cut], ranks[cut:]):
            self._run("convert", *source, self.folder / "checked", *options,
                      "--rank", ",".join(map(str, part)))
        self._run("convert", *source, self.folder / "unchecked", *options,
                  *(option for option in self.off["convert"]
                    if option != "--no-checksum" or "--crc" not in options))

    def _in_shards(self, source, options):
        count = self.rng.randrange(2, 4)
        for shard in range(count):
            self._run("convert", *source, self.folder / "checked", *options,
                      "--shard", f"{shard}/{count}")
        self._run("convert", *source, self.folder / "unchecked", *options)

    def _onto_older(self, source, options):
        """Replaces a set under other names, which has to be gone then."""
        older = [option for option in options if option != "--crc"]
        for flag in ("--names", "--prefix"):
            if flag in older:
                del older[older.index(flag):older.index(flag) + 2]
        prefix = self.rng.choice(("checkpoint_", "older-1_"))
        self._run("convert", *source, self.folder / "checked", *older,
                  "--prefix", prefix)
        self._both("convert", source, [*options, "--force", "--prune"])

    def _right(self, training, choice, kind, key, names):
        folder = self.folder / "checked"
        if kind == "ranks":
            self.failures += journeys.wrong_rank_files(
                folder, training, choice, key, names)
        else:
            self.failures += journeys.wrong_whole_folder(
                folder, training, choice, kind == "unified")

    def twice(self):
        """Few parameters, so that ranks may have none, and once more from
        there."""
        rng = self.rng
        training = trainings.random_training(rng, "both")
        kept = [p.name for p in training.parameters
                if p.kind == "same" and p.in_target
                and p.name in training.source.names()]
        choice = Choice(include=rng.sample(kept, min(2, len(kept))))
        store = journeys.random_store(rng, training)
        source, options = journeys.write_store(rng, self.folder, store,
                                               training)
        kind, key, names, more = self._target(training, store)
        options += journeys.strategy_arguments(self.folder, training)
        between = self.folder / "between"
        self._run("convert", *source, between, *options, *more,
                  *choice.options(self.folder))
        self.failures += journeys.wrong_rank_files(between, training, choice,
                                                   key, names)
        held = {rank: [(name, dtype, list(arrays[0].shape),
                        arrays[0].tobytes())
                       for name, (dtype, arrays) in
                       choice.applied(training.expected(rank),
                                      training).items()]
                for rank in range(training.target_ranks)}
        again = dataclasses.replace(
            training, source=training.target, target=None, files=held,
            alternatives={})
        options = ["--src-strategy", options[-1]]
        if key:
            options += ["--key-file", self.folder / "target_key"]
        kind = rng.choice(("ckpt", "safetensors", "unified", "huggingface"))
        self._both("convert", [between], [*options, "--format", kind])
        self._same_bytes()
        self._right(again, Choice(), "ranks" if kind in ("ckpt", "safetensors")
                    else kind, None, None)

    def recode(self):
        rng = self.rng
        training = trainings.random_training(rng)
        store = journeys.random_store(rng, training)
        store.where, store.as_sources, store.take_older = ("rank_{rank}", False,
                                                           False)
        store.container = rng.choice(("ckpt", "safetensors"))
        if store.container != "ckpt":
            store.mode = store.key = None
        journeys.write_store(rng, self.folder, store, training)
        end = "safetensors" if store.container == "ckpt" else "ckpt"
        options = ["--format", end]
        if store.key:
            options += ["--key-file", self.folder / "key"]
        if rng.random() < 0.3:
            options.append("--crc")
        self._both("recode", [self.folder / "src"], options)
        self._same_bytes()
        for rank, rows in training.files.items():
            path = self.folder / "checked" / store.path(rank)
            expected = {name: (dtype, [trainings.array_of(dtype, dims, content)])
                        for name, dtype, dims, content in rows}
            self.failures += journeys.differences(
                expected, readers.file(path.with_suffix("." + end)),
                f"rank {rank}")

    def merge(self):
        """The slices of one stage."""
        rng = self.rng
        while True:
            training = trainings.random_training(rng, "to full")
            if len(training.source.stages) == 1 and not training.alternatives:
                break
        own = {p.name for p in training.parameters if p.kind == "own"}
        training.files = {rank: [row for row in rows if row[0] not in own]
                          for rank, rows in training.files.items()}
        store = journeys.random_store(rng, training)
        store.as_sources = store.take_older = store.older = False
        journeys.write_store(rng, self.folder, store, training)
        options = ["--strategy", journeys.write_side(
            self.folder / "strategy", training, training.source)]
        files = [self.folder / "src" / store.path(rank)
                 for rank in range(training.source_ranks)]
        self._merged(files, options, store, training.expected(0), training)

    def segments(self):
        rng = self.rng
        training = trainings.random_training(rng, "from full")
        store = dataclasses.replace(
            journeys.random_store(rng, training), as_sources=False,
            container=rng.choice(("ckpt", "safetensors")), mode=None, key=None)
        store.older = store.take_older = False
        rows, count = training.files[0], rng.randrange(2, 5)
        parts = dataclasses.replace(training, files={
            rank: rows[rank::count] for rank in range(count)})
        store.where = "segments_{rank}"
        if rng.random() < 0.5:
            store.stem = f"model-{{rank:05}}-of-{count:05}"
            parts.files = {rank + 1: held
                           for rank, held in parts.files.items()}
        journeys.write_store(rng, self.folder, store, parts)
        files = [self.folder / "src" / store.path(rank)
                 for rank in parts.files]
        training.target = None
        expected = {name: (dtype, [trainings.array_of(dtype, dims, content)])
                    for name, dtype, dims, content in rows}
        self._merged(files, ["--segments"], store, expected, training)

    def _merged(self, files, options, store, expected, training):
        choice = Choice()
        if self.rng.random() < 0.2:
            choice.exclude = [self.rng.choice(("*norm*", "adam_*"))]
        options += choice.options(self.folder)
        if store.key:
            options += ["--key-file", self.folder / "key"]
        for name in ("checked", "unchecked"):
            (self.folder / name).mkdir()
        for name in ("checked", "unchecked"):
            off = self.off["merge"] if name == "unchecked" else []
            self._run("merge", *options, *files,
                      self.folder / name / f"out{store.suffix}", *off)
        self._same_bytes()
        self.failures += journeys.differences(
            choice.applied(expected, training),
            readers.file(self.folder / "checked" / f"out{store.suffix}"),
            "out")


def check_bare(seed, folder, reshard, off):
    """A case of those that MindSpore is compared with, whose layouts and names
    are wilder than those of training."""
    case = cases.random_case(seed, seed)
    for rank, rows in case.files.items():
        path = folder / "src" / f"rank_{rank}" / "net-1_100.ckpt"
        write_checkpoint(path, rows, case.value_limit, case.crc)
    options = journeys.strategy_arguments(folder, case)
    runs = [run(reshard, "convert", folder / "src", folder / name, *options,
                *more)
            for name, more in (("checked", []),
                               ("unchecked", ["--check-replicas=none",
                                              "--unmatched=copy"]))]
    if [done.returncode for done in runs] != [0, 0]:
        return [f"exit {[done.returncode for done in runs]}",
                *journeys.said(runs[0])]
    files = [journeys.data_files(folder / name)
             for name in ("checked", "unchecked")]
    return [name for name in sorted(set(files[0]) | set(files[1]))
            if name not in files[0] or name not in files[1]
            or files[0][name].read_bytes() != files[1][name].read_bytes()]


def check(number, seed, reshard, off, keep=None):
    """Returns the case's seed and what is wrong with it, as lines."""
    name = f"{seed}/{number}"
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        if number % BARE_EVERY == 0:
            return name, check_bare(name, folder, reshard, off)
        return name, Honest(name, folder, reshard, off).run()


def main():
    arguments = case_loop.parse_repeatable(case_loop.parser(__doc__, cases=200))
    reshard, seed = arguments.reshard, arguments.seed
    numbers = arguments.numbers
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
    print(f"seed {seed}, {len(numbers)} cases", flush=True)
    failed, off = 0, checks_off(reshard)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for case, failures in pool.map(
                check, numbers, *([value] * len(numbers)
                                  for value in (seed, reshard, off,
                                                arguments.keep)),
                chunksize=8):
            if failures:
                failed += 1
                print(f"FAILED {case}", *failures[:MAX_LINES], sep="\n  ",
                      flush=True)
    print(f"seed {seed}: {len(numbers) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
