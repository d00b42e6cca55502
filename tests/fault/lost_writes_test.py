#!/usr/bin/env python3
"""Loses all that a conversion did not make durable, after each call that changes its target.

A stricter disk than any that one can buy, and no privilege needed to have it: what a conversion
does is recorded, with every byte that it writes. After each call the power fails: of files that
were written since they were flushed nothing is left, or zeros, or a half; of the changes of a
folder since it was flushed a random number of the first are there, in each folder another one.
What such a disk would hold then is laid out as a target folder: the old set is there, or the new
one with its manifest, every byte of it, or no manifest. The same command, with or without
--resume, completes it.
"""

import collections
import pathlib
import random
import re
import shutil

import harness

CASE = "case_037"
VARIANTS = 40  # random ones at each call, beside the two extremes
TRACED = ("openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,write,pwrite64,"
          "pwritev,ftruncate,fallocate,fsync,fdatasync")
CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?")

# An entry of a folder that appears, that goes, or that does both.
Change = collections.namedtuple("Change", "node removed added")


class File:
    """What was written to a file, and what of it was flushed."""

    def __init__(self, content=b""):
        self.content = bytearray(content)
        self.flushed = bytes(content)


class Folder:
    """Only its identity counts: what is in it depends on which changes took place."""


class Disk:
    """A file system of which nothing lasts but what was flushed."""

    def __init__(self, place, before):
        self.place = pathlib.Path(place)
        self.root = Folder()
        self.start = {self.root: {}}  # what is in each folder that was there before
        self.changes = []
        self.flushed = set()  # numbers of changes
        for path in sorted(before.rglob("*")) if before else ():
            self.add_durable(before.name / path.relative_to(before), path)

    def add_durable(self, path, original):
        folder = self.root
        for name in path.parts[:-1]:
            folder = self.start[folder].setdefault(name, Folder())
            self.start.setdefault(folder, {})
        node = Folder() if original.is_dir() else File(original.read_bytes())
        if isinstance(node, Folder):
            self.start[node] = {}
        self.start[folder][path.name] = node

    def entries(self, took_place):
        """What is in each folder after these changes, by number, of those that can take place."""
        entries = {folder: dict(names) for folder, names in self.start.items()}
        for number, (node, removed, added) in enumerate(self.changes):
            if number not in took_place or (added and added[0] not in entries):
                continue
            if removed:
                folder, name = removed
                if entries.get(folder, {}).get(name) is not node:
                    continue
                del entries[folder][name]
            if added:
                folder, name = added
                entries[folder][name] = node
                if isinstance(node, Folder):
                    entries.setdefault(node, {})
        return entries

    def find(self, path):
        """The node at an absolute path now; None where there is none, or elsewhere on the disk."""
        path = pathlib.Path(path)
        if path != self.place and self.place not in path.parents:
            return None
        entries = self.entries(range(len(self.changes)))
        node = self.root
        for name in path.relative_to(self.place).parts:
            node = entries.get(node, {}).get(name)
        return node

    def place_of(self, path):
        path = pathlib.Path(path)
        return self.find(path.parent), path.name

    def change(self, node, removed=None, added=None):
        for place in (removed, added):
            assert place is None or place[0] is not None, f"unknown folder of {place[1]}"
        self.changes.append(Change(node, removed, added))

    def flush(self, node):
        if isinstance(node, File):
            node.flushed = bytes(node.content)
        for number, (_, removed, added) in enumerate(self.changes):
            if node in [place[0] for place in (removed, added) if place]:
                self.flushed.add(number)

    def states(self, choice):
        """Yields what may be left if the power fails now: paths to content, None for folders."""
        pending = [number for number in range(len(self.changes)) if number not in self.flushed]
        yield self.state(self.flushed, lambda _: b"")
        yield self.state(range(len(self.changes)), lambda _: b"")
        for _ in range(VARIANTS):
            last = collections.defaultdict(lambda: choice.choice((-1, *pending)))
            took_place = {number for number in pending if all(
                number <= last[place[0]] for place in self.changes[number][1:] if place)}
            yield self.state(self.flushed | took_place, lambda content: choice.choice(
                (b"", bytes(len(content)), bytes(content[:len(content) // 2]))))

    def state(self, took_place, lose):
        found = {}
        entries = self.entries(took_place)

        def collect(folder, path):
            for name, node in entries[folder].items():
                if isinstance(node, Folder):
                    found[path / name] = None
                    collect(node, path / name)
                else:
                    whole = node.flushed == node.content
                    found[path / name] = node.flushed if whole else lose(node.content)

        collect(self.root, pathlib.Path())
        return found


def decode(text):
    return bytes.fromhex(text.replace("\\x", "").strip('".'))


def path_at(folder, name):
    """The path that a call gives by a descriptor's path, as strace shows it, and a name."""
    shown = folder.partition("<")[2].rstrip(">")
    return pathlib.Path(decode(shown).decode(), decode(name).decode())


def path_of(descriptor):
    return path_at(descriptor, '""')


def carry_out(disk, call, arguments, result):
    """Does on the disk what the call did; returns whether it changed anything there."""
    if call in ("mkdir", "mkdirat"):
        path = path_at(*(["", *arguments] if call == "mkdir" else arguments)[:2])
        if disk.find(path.parent) is None:
            return False
        disk.change(Folder(), added=disk.place_of(path))
    elif call == "openat":
        path = path_at(*arguments[:2])
        if "O_CREAT" not in arguments[2] or disk.find(path):
            return False
        assert "O_TRUNC" not in arguments[2], f"{path}: truncated"
        disk.change(File(), added=disk.place_of(path))
    elif call in ("unlink", "unlinkat", "rmdir"):
        path = path_at(*(arguments if call == "unlinkat" else ["", *arguments])[:2])
        disk.change(disk.find(path), removed=disk.place_of(path))
    elif call in ("renameat", "renameat2"):
        old, new = path_at(*arguments[:2]), path_at(*arguments[2:4])
        disk.change(disk.find(old), removed=disk.place_of(old), added=disk.place_of(new))
    elif call in ("fsync", "fdatasync"):
        node = disk.find(path_of(arguments[0]))
        if node is None:
            return False
        disk.flush(node)
    else:
        node = disk.find(path_of(arguments[0])) if "<" in arguments[0] else None
        if node is None:
            return False
        change_content(node.content, call, arguments, result)
    return True


def change_content(content, call, arguments, result):
    if call == "fallocate":
        offset, length = int(arguments[2]), int(arguments[3])
        content.extend(bytes(max(0, offset + length - len(content))))
    elif call == "ftruncate":
        length = int(arguments[1])
        content.extend(bytes(max(0, length - len(content))))
        del content[length:]
    else:
        assert call in ("write", "pwrite64"), f"{call} is not known"
        written = decode(arguments[1])[:result]
        offset = int(arguments[3]) if call == "pwrite64" else len(content)
        content[offset:offset + len(written)] = written


def recorded_states(disk, log, choice):
    """Yields where the power failed and what was there, once for each state."""
    seen = set()
    lines = [line for line in log.read_text().splitlines() if "+++" not in line]
    for number, line in enumerate(lines):
        assert "unfinished" not in line, f"calls of two threads at a time: {line[:200]}"
        call, arguments, result, _ = CALL.match(line).groups()
        if int(result) < 0 or not carry_out(disk, call, arguments.split(", "), int(result)):
            continue
        for state in disk.states(choice):
            key = tuple(sorted(state.items()))
            if key not in seen:
                seen.add(key)
                yield f"{call} in line {number}", state
    for state in disk.states(choice):
        yield "the end", state


def lay_out(state, folder):
    for path, content in sorted(state.items()):
        if content is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
        else:
            (folder / path).write_bytes(content)


def survive(job, folder, before_folder, more, choice, options):
    """Returns how many power failures were survived."""
    place = folder / "disk"
    place.mkdir(parents=True)
    target = place / "target"
    if before_folder:
        shutil.copytree(before_folder, target)
    before = harness.snapshot(target)
    disk = Disk(place, target if before_folder else None)
    log = folder / "log"
    done = harness.run(harness.strace(job.command(target, *more), "-y", "-xx", "-s", "100000000",
                                      "-e", f"trace={TRACED}", log=log))
    assert done.returncode == 0, done.stderr.decode()
    finished = harness.snapshot(target)

    def take_up(number, where, state):
        laid_out = folder / str(number)
        laid_out.mkdir()
        lay_out(state, laid_out)
        at = laid_out / "target"
        where = f"{folder.name}: power failed after {where}, state {number}"
        published = harness.check_nothing_looks_finished(at, finished, before, where)
        assert published or "the end" not in where, f"{where}: not durable, though it succeeded"
        again = harness.AGAIN[number % len(harness.AGAIN)]
        harness.complete(job, at, finished, where, *more, *again)
        shutil.rmtree(laid_out)

    states = [(number, *state) for number, state in enumerate(recorded_states(disk, log, choice))]
    return harness.run_all(take_up, harness.sample(states, options)).total()


def main():
    options = harness.arguments("reshard", seed=True, every=True)
    harness.need_programs("strace")
    choice = random.Random(options.seed)
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, CASE)
        old = folder / "old"
        harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        for name, before, more in (("a new target", None, ()), ("an old set", old, ("--force",))):
            count = survive(job, folder / name, before, more, choice, options)
            print(f"{name}: {count} power failures with lost writes survived", flush=True)


main()
