"""One planted fault in one folder: what the kinds of faults have in common."""

import dataclasses
import hashlib
import os
import random

import journeys
import training as trainings
from journeys import Choice, run


class Wrong(Exception):
    """reshard did otherwise than it has to."""


class Planted:
    """A folder, random choices, and what reshard made of its files."""

    def __init__(self, seed, folder, reshard):
        self.rng = random.Random(seed)
        self.folder = folder
        self.out = folder / "out"
        self.reshard = reshard

    # What is stored.

    def training(self, kind=None, accept=lambda training: True, **options):
        """Returns a random training run that `accept` takes."""
        for _ in range(1000):
            found = trainings.random_training(self.rng, kind, **options)
            if accept(found):
                return found
        raise AssertionError("no training run of this kind")

    def store(self, training, **fixed):
        """Returns a way to store it; some of it is fixed."""
        store = journeys.random_store(self.rng, training)
        fixed = {"older": False, "take_older": False, "as_sources": False,
                 **fixed}
        if fixed.get("container", "ckpt") != "ckpt":
            fixed.update(mode=None, key=None)
        if not store.is_ranks and fixed.get("container") in ("ckpt",
                                                             "safetensors"):
            fixed.setdefault("where", "rank_{rank}")
        return dataclasses.replace(store, **fixed)

    def written(self, training, store):
        """Writes files and strategies; returns SRC and options."""
        source, options = journeys.write_store(self.rng, self.folder, store,
                                               training)
        return source, [*options,
                        *journeys.strategy_arguments(self.folder, training)]

    def target_format(self, training):
        """Returns options of a random format of the target."""
        formats = [[], ["--format", "ckpt"], ["--format", "safetensors"]]
        if not training.target:
            formats += [["--format", "unified"], ["--format", "huggingface"]]
        return self.rng.choice(formats)

    # What reshard is asked for.

    def run(self, *arguments):
        done = run(self.reshard, *arguments)
        self.last = " ".join(map(str, arguments))
        self.words = done.stderr
        return done

    def wrong(self, why):
        return Wrong(f"{why}\n  {self.last}\n  {self.words.strip()[:1500]}")

    def done(self, *arguments):
        """Runs what has to succeed; returns its messages."""
        done = self.run(*arguments)
        if done.returncode:
            raise self.wrong(f"exit {done.returncode}, not 0")
        return journeys.said(done)

    def refused(self, *arguments, codes=(3,), names=(), one_of=()):
        """Runs what has to be refused, with all names, and one of some, in the
        message."""
        done = self.run(*arguments)
        if done.returncode not in codes:
            raise self.wrong(f"exit {done.returncode}, not {codes}")
        for name in names:
            if str(name) not in done.stderr:
                raise self.wrong(f"the message does not name {name}")
        if one_of and not any(str(name) in done.stderr for name in one_of):
            raise self.wrong(f"the message names none of {one_of}")

    def warned(self, *arguments, names=(), word="warning:"):
        """Runs what has to succeed with a line that has all of `names`."""
        lines = self.done(*arguments)
        if not any(word in line and all(str(name) in line for name in names)
                   for line in lines):
            raise self.wrong(f"no {word} with {names}")

    def convert_refused(self, source, options, one_of=(), allow=None):
        """Convert or plan has to refuse, and writes nothing; with `allow` it
        has to go on."""
        command = self.rng.choice(("convert", "convert", "plan"))
        self.refused(command, *source, self.out, *options, one_of=one_of)
        if self.out.exists() and any(self.out.rglob("rank_*/*")):
            raise self.wrong("files at the target")
        # A unified folder cannot hold what no strategy has alone.
        if allow and "unified" not in options and self.rng.random() < 0.3:
            self.done("convert", *source, self.out, *options, *allow)

    # What came of it.

    def right_ranks(self, training, choice=None, folder=None, key=None):
        self._right(journeys.wrong_rank_files(
            folder or self.out, training, choice or Choice(), key))

    def right_whole(self, training, unified=False, choice=None):
        self._right(journeys.wrong_whole_folder(
            self.out, training, choice or Choice(), unified))

    def right(self, training, options, choice=None, key=None):
        """Looks at whatever the options made of the target."""
        kind = options[options.index("--format") + 1] if (
            "--format" in options) else "ckpt"
        if kind in ("unified", "huggingface"):
            self.right_whole(training, kind == "unified", choice)
        else:
            self.right_ranks(training, choice, key=key)

    def _right(self, wrong):
        if wrong:
            raise self.wrong("\n  ".join(wrong[:4]))

    def digests(self, paths):
        return {path: hashlib.sha256(path.read_bytes()).digest()
                for path in paths}

    def another_name(self, path):
        """Returns a name of a file: its path, a link, or a second name."""
        how = self.rng.choice(("path", "dots", "symlink", "hard link",
                               "folder"))
        if how == "dots":
            return path.parent / ".." / path.parent.name / path.name
        if how == "path":
            return path
        other = self.folder / "other_name"
        if how == "folder":
            os.symlink(path.parent, other)
            return other / path.name
        other = other.with_suffix(path.suffix)
        if how == "symlink" or not path.exists():
            os.symlink(path, other)
        else:
            os.link(path, other)
        return other


def renamed(side, rename):
    """Returns the side with other names."""
    return dataclasses.replace(side, stages=[
        {rename(name): layout for name, layout in stage.items()}
        for stage in side.stages])


def cut_names(side):
    """Returns the names of what the strategy cuts."""
    return {name for stage in side.stages for name, layout in stage.items()
            if max(layout.cuts(), default=1) > 1}


def held(training):
    """Returns (dtype, dims) by name of what the files hold."""
    return {row[0]: (row[1], row[2]) for rows in training.files.values()
            for row in rows}


def is_single(dims):
    return all(size in (0, 1) for size in dims)
