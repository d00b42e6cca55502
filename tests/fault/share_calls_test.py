#!/usr/bin/env python3
"""The plan that the first shard leaves for the others: what it saves, and what becomes of a wrong one.

System calls are counted with strace. A shard that follows the plan opens its own sources and few
other files, and the last one makes a number of calls that grows with the number of shards.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

import harness

# 256 tiny files of source ranks become 64.
SOURCES, TARGETS = 256, 64
MODEL = ("--matrices", "2", "--rows", "1024", "--columns", "4", "--dtype", "Float32",
         "--no-optimizer", "--cut", "rows")
MOST_MORE_OPENS = 16
MOST_LISTINGS = 8

CALL = re.compile(r"^\d+ +(\w+)\((.*?)\) += (-?\d+)", re.MULTILINE)
NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Counts:
    """System calls of a shard: sources that it opens, folders that it lists, and all calls."""

    def __init__(self, trace, source):
        self.opens = self.listings = self.calls = 0
        self.sources = set()
        for call, words, result in CALL.findall(trace):
            self.calls += 1
            name = NAME.search(words)
            if call == "getdents64" and result == "0":
                self.listings += 1
            if (call == "openat" and name and "O_DIRECTORY" not in words
                    and name.group(1).startswith(f"{source}/rank_")):
                self.opens += 1
                self.sources.add(name.group(1))


class Many:
    """A conversion of many ranks by many shards, to the ranks of a strategy or of --tp."""

    def __init__(self, options, folder, makes_strategy):
        self.options, self.folder = options, folder
        harness.generate(options.gen, folder / "source", *MODEL, "--tp", str(SOURCES))
        harness.generate(options.gen, folder / "layout", *MODEL, "--tp", str(TARGETS),
                         "--strategy-only")
        layout = folder / "layout" / "strategy" / "strategy_0.ckpt"
        to = ("--tp", str(TARGETS)) if makes_strategy else ("--dst-strategy", str(layout))
        self.job = harness.Job(options.reshard, folder / "source",
                               folder / "source" / "strategy" / "strategy_0.ckpt", None, *to,
                               "--jobs", "1")
        self.finished = harness.undisturbed(self.job, folder / "alone")
        self.origin = (folder / "alone" / "origin.jsonl").read_bytes()

    def run(self, target, shard):
        done = harness.run(self.job.command(target, "--shard", shard))
        assert done.returncode == 0, f"{shard}: {done.stderr.decode()}"

    def count(self, target, shard):
        log = self.folder / "log"
        done = harness.run(harness.strace(self.job.command(target, "--shard", shard), "-e",
                                          "trace=%file,%desc", log=log))
        assert done.returncode == 0, f"{shard}: {done.stderr.decode()}"
        counts = Counts(log.read_text(), self.folder / "source")
        print(f"{shard}: {counts.opens} opens of {len(counts.sources)} sources, "
              f"{counts.listings} listings, {counts.calls} calls", flush=True)
        return counts

    def check(self, shards):
        target = self.folder / f"target{shards}"
        first = self.count(target, f"0/{shards}")
        assert len(first.sources) == SOURCES, "the first shard does not look at all sources"
        traced = (1, shards // 2, shards - 2)
        rest = [number for number in range(1, shards - 1) if number not in traced]
        harness.run_all(self.run, [(target, f"{number}/{shards}") for number in rest])
        own = SOURCES // TARGETS
        for number in traced:
            counts = self.count(target, f"{number}/{shards}")
            assert counts.opens <= own + MOST_MORE_OPENS, f"{number}: {counts.opens} opens"
            assert counts.listings <= MOST_LISTINGS, f"{number}: {counts.listings} listings"
        last = self.count(target, f"{shards - 1}/{shards}")
        assert last.opens <= own + MOST_MORE_OPENS, f"last: {last.opens} opens"
        harness.check_finished(target, self.finished, f"{shards} shards")
        assert (target / "origin.jsonl").read_bytes() == self.origin, "other origin"
        shutil.rmtree(target)
        return last

    def measure(self):
        few, many = (self.check(shards) for shards in (TARGETS, 4 * TARGETS))
        # Locks and marks of 192 more shards are removed.
        more = many.calls - few.calls
        assert more <= 8 * 3 * TARGETS, f"{more} more calls for {3 * TARGETS} more shards"


class Few:
    """A conversion of few ranks by two shards, whose plan is damaged."""

    def __init__(self, options, folder):
        self.folder = folder
        golden = harness.golden_job(options.reshard, "case_037")
        shutil.copytree(golden.source, folder / "source")
        for entry in sorted((folder / "source").rglob("*"), reverse=True):
            os.utime(entry, (1700000000, 1700000000))
        self.job = harness.Job(options.reshard, folder / "source", None, None, *golden.options)
        self.finished = harness.undisturbed(self.job, folder / "alone")
        self.target = folder / "target"

    def command(self, shard, *more):
        return ["-v" if part == "-q" else part
                for part in self.job.command(self.target, "--shard", shard, *more)]

    def run(self, shard, *more):
        done = harness.run(self.command(shard, *more))
        return done.returncode, done.stderr.decode()

    def begin(self):
        """Runs shard 0, and returns its plan."""
        shutil.rmtree(self.target, ignore_errors=True)
        code, error = self.run("0/2")
        assert code == 0, error
        (plan,) = self.target.glob(".reshard/*/plan.jsonl")
        return plan

    def finish(self, where, follows):
        code, error = self.run("1/2")
        assert code == 0, f"{where}: {error}"
        assert follows == ("another share has planned" in error), f"{where}: {error}"
        harness.check_finished(self.target, self.finished, where)

    def follows(self):
        self.begin()
        self.finish("an undamaged plan", True)
        code, error = self.run("1/2")
        assert code == 0 and "nothing to do" in error, error

    def damaged(self):
        whole = self.begin().read_bytes()
        for at in range(0, len(whole), 97):
            plan = self.begin()
            plan.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            self.finish(f"byte {at} of the plan", False)
        for name, content in (("empty", b""), ("cut off", whole[:-1]), ("rubbish", b"x" * 1000)):
            self.begin().write_bytes(content)
            self.finish(f"a plan that is {name}", False)
        self.begin().unlink()
        self.finish("without a plan", False)
        plan = self.begin()
        plan.unlink()
        plan.mkdir()
        self.finish("a folder in place of the plan", False)

    def stale(self):
        """Sources that change after planning are noticed by the shard that reads them."""
        files = sorted((self.folder / "source").glob("rank_*/*.ckpt"))
        before = {path: path.stat() for path in files}
        noticed = 0
        for path in files:
            plan = self.begin()
            os.utime(path, ns=(0, before[path].st_mtime_ns + 1))
            code, error = self.run("1/2")
            os.utime(path, ns=(0, before[path].st_mtime_ns))
            if code == 0:  # it does not read that one
                harness.check_finished(self.target, self.finished, f"changed: {path}")
                continue
            noticed += 1
            assert code == 3 and "changed: " in error and path.name in error, error
            assert plan.exists(), "a failed shard removes the plan"
            self.finish("after the change is undone", True)
        assert noticed > 0, "no change was noticed"
        # One more file in a folder: this shard looks for the sources by itself.
        self.begin()
        more = files[-1].with_name("notes.txt")
        more.write_text("")
        self.finish("a new file beside a source", False)
        more.unlink()
        os.utime(more.parent, (1700000000, 1700000000))

    def other_options(self):
        self.begin()
        for shard, more, words in (("1/2", ("--no-checksum",), "--no-checksum"),
                                   ("1/2", ("--exclude", "*bias*"), "another plan"),
                                   ("1/3", (), "begun as 2 shares, but now run as 3 shares")):
            code, error = self.run(shard, *more)
            assert code == 3 and words in error, f"{shard} {more}: {code} {error}"
        self.finish("after shards with other options", True)

    def planner_dies(self):
        """A shard that is killed while it plans leaves no plan, and the next one plans."""
        killed = 0
        for when in (3, 6, 12, 20, 30):
            shutil.rmtree(self.target, ignore_errors=True)
            done = harness.run(harness.strace(self.command("0/2"), "-e", "trace=openat", "-e",
                                              f"inject=openat:signal=KILL:when={when + 20}"))
            killed += done.returncode == -9
            for shard in ("1/2", "0/2"):
                code, error = self.run(shard)
                assert code == 0, f"{when}, {shard}: {error}"
            harness.check_finished(self.target, self.finished, f"killed at open {when}")
        assert killed > 0, "no shard was killed"

    def failed_planner(self):
        """It leaves nothing."""
        shutil.rmtree(self.target, ignore_errors=True)
        first, *_ = sorted((self.folder / "source").glob("rank_*/*.ckpt"))
        content, times = first.read_bytes(), first.stat()
        first.write_bytes(b"x" * 100)
        code, error = self.run("0/2")
        first.write_bytes(content)
        os.utime(first, ns=(0, times.st_mtime_ns))
        assert code == 3, error
        assert not self.target.exists(), "a shard that could not plan leaves its target folder"

    def at_once(self):
        """All shards wait for the one that plans, and take its plan."""
        shutil.rmtree(self.target, ignore_errors=True)
        # The first listing is that of .reshard, when the shard has its turn.
        with harness.Stopped(self.command("0/5"), "getdents64", 1,
                             self.folder / "stopped") as first:
            assert first.stopped is not None
            running = [subprocess.Popen(self.command(f"{i}/5"), stderr=subprocess.PIPE)
                       for i in range(1, 5)]
            deadline = time.monotonic() + harness.TIMEOUT
            # Each has opened the lock that it waits for.
            while time.monotonic() < deadline and not all(waits(process) for process in running):
                time.sleep(0.002)
            assert not list(self.target.glob(".reshard/*/plan.jsonl"))
        assert first.finish().returncode == 0
        errors = [process.communicate(timeout=harness.TIMEOUT)[1].decode() for process in running]
        assert all(process.returncode == 0 for process in running), errors
        assert all("another share has planned" in error for error in errors), errors
        harness.check_finished(self.target, self.finished, "five shards at once")
        running = [subprocess.Popen(self.command(f"{i}/5"), stderr=subprocess.PIPE)
                   for i in range(5)]
        errors = [process.communicate(timeout=harness.TIMEOUT)[1].decode() for process in running]
        assert all(process.returncode == 0 for process in running), errors
        assert all("nothing to do" in error for error in errors), errors
        harness.check_finished(self.target, self.finished, "five shards again")


def waits(process):
    """Whether a process has the file open by which shards wait for each other to begin."""
    folder = pathlib.Path(f"/proc/{process.pid}/fd")
    for entry in folder.iterdir():
        try:
            if os.readlink(entry).endswith(".reshard/begin"):
                return True
        except OSError:
            pass
    return False


def main():
    options = harness.arguments("reshard", "gen")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        (folder / "few").mkdir()
        few = Few(options, folder / "few")
        for part in (few.follows, few.damaged, few.stale, few.other_options, few.planner_dies,
                     few.failed_planner, few.at_once):
            begin = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
        for name in ("many", "made"):
            (folder / name).mkdir()
            many = Many(options, folder / name, name == "made")
            many.measure()
            shutil.rmtree(folder / name)


main()
