#!/usr/bin/env python3
"""Shards of one conversion: killed at every system call that changes something, all at once, under
Open MPI, and in network namespaces of their own.

Whatever happens: there is no manifest without all files, the shards that live end with 0 and say
what is missing, the same shard again completes the set, and it is what one run alone writes, byte
for byte.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess

import harness
import kill_points

GOLDEN = "case_037"
FOLDER = "case_000"  # of those that become a folder of full tensors
# One target file of 80 MiB, which two shards split at 64 MiB.
SPLIT = ("--matrices", "5", "--rows", "2048", "--columns", "2048", "--dtype", "Float32",
         "--no-optimizer", "--tp", "2", "--cut", "columns")


class Shards:
    """A conversion that several processes do together."""

    def __init__(self, job, folder):
        self.job = job
        self.folder = folder
        self.folder.mkdir()
        self.finished = harness.undisturbed(job, folder / "alone")

    def command(self, target, shard):
        return [part for part in self.job.command(target, "--shard", shard) if part != "-q"]

    def run(self, target, shard):
        """Runs a shard and returns whether the set was published by then."""
        done = harness.run([*self.command(target, shard), "--json"])
        error = done.stderr.decode()
        assert done.returncode == 0, f"shard {shard}: exit {done.returncode}: {error}"
        published = json.loads(done.stdout)["shard"]["published"]
        assert published == os.path.exists(target / harness.MANIFEST), error
        return published

    def kill(self, number, order, point):
        """Kills shard 1 of 2 at this point, before or after shard 0, then completes the set."""
        target = self.folder / f"target{number}_{order}"
        call, when = point
        where = f"{self.folder.name}, shard 1 {order}, killed at {call} {when}"
        if order == "last":
            self.run(target, "0/2")
        done = harness.run(harness.strace(self.command(target, "1/2"), "-e", f"trace={call}", "-e",
                                          f"inject={call}:signal=KILL:when={when}"))
        assert done.returncode in (-9, 0), f"{where}: {done.returncode}: {done.stderr.decode()}"
        if target.exists():
            harness.check_nothing_looks_finished(target, self.finished, {}, where)
        if order == "first":
            self.run(target, "0/2")
        elif number % 2 == 1:
            done = harness.run([self.job.reshard, "commit", str(target)])
            assert done.returncode in (0, 3), f"{where}: commit: {done.stderr.decode()}"
        again = harness.run(self.command(target, "1/2"))
        assert again.returncode == 0, f"{where}: again: {again.stderr.decode()}"
        harness.check_finished(target, self.finished, where)
        shutil.rmtree(target)
        return done.returncode

    def kill_everywhere(self, options):
        total = 0
        for order in ("first", "last"):
            counted = self.folder / f"counted_{order}"
            if order == "last":
                self.run(counted, "0/2")
            points = kill_points.of(self.command(counted, "1/2"), self.folder / "log")
            chosen = harness.sample(list(enumerate(points)), options)
            total += harness.run_all(self.kill, [(number, order, point)
                                                 for number, point in chosen])[-9]
        assert total > 0
        print(f"{self.folder.name}: killed at {total} points, all completed", flush=True)

    def race(self, count, round_):
        """All shards at once: the set is published once."""
        target = self.folder / f"race{count}_{round_}"
        running = [subprocess.Popen(self.command(target, f"{i}/{count}"), stderr=subprocess.PIPE)
                   for i in range(count)]
        errors = [process.communicate(timeout=harness.TIMEOUT)[1].decode() for process in running]
        assert all(process.returncode == 0 for process in running), errors
        assert any("the set is published" in error for error in errors), errors
        harness.check_finished(target, self.finished, f"{count} shards at once")
        shutil.rmtree(target)

    def other_plan_is_refused(self, other):
        """While a shard lives, neither another plan's shard nor an ordinary run may write there."""
        target = self.folder / "refused"
        with harness.Stopped(self.command(target, "0/2"), "fallocate", 1,
                             self.folder / "stopped") as first:
            assert first.stopped is not None
            for command in (other.command(target, "--shard", "1/2"), other.command(target),
                            other.command(target, "--force"), self.job.command(target),
                            self.command(target, "0/2")):
                done = harness.run(command)
                assert done.returncode == 6, f"{command}: {done.returncode} {done.stderr.decode()}"
        assert first.finish().returncode == 0
        self.run(target, "1/2")
        harness.check_finished(target, self.finished, "after runs that were refused")

    def stands_still(self):
        """A shard that is stopped, as on a host that hangs, is named by all that wait for it."""
        target = self.folder / "still"
        log = self.folder / "stopped"
        commit = [self.job.reshard, "commit", str(target)]
        with harness.Stopped(self.command(target, "0/2"), "flock", 2, log) as beginning:
            holder = f"process {beginning.stopped} on {socket.gethostname()}"
            for command in (self.command(target, "1/2"), commit):
                done = harness.run([*command, "--wait", "3"])
                error = done.stderr.decode()
                assert done.returncode == 6, f"{command}: {done.returncode} {error}"
                assert "reshard: error: already exists: " in error, error
                assert holder in error and f"{target}/.reshard/begin" in error, error
        assert beginning.finish().returncode == 0
        with harness.Stopped(self.command(target, "1/2"), "fallocate", 1, log) as writing:
            holder = f"process {writing.stopped} on {socket.gethostname()}"
            done = harness.run(self.command(target, "1/2"))
            assert done.returncode == 6, done.stderr.decode()
            assert holder in done.stderr.decode(), done.stderr.decode()
            done = harness.run(commit)
            assert done.returncode == 3, done.stderr.decode()
            assert "1/2" in done.stderr.decode() and holder in done.stderr.decode(), done.stderr.decode()
        assert writing.finish().returncode == 0
        harness.check_finished(target, self.finished, "after shards that stood still")
        print("shards that stand still: named", flush=True)

    def open_mpi(self):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
        for count in ("2", "4"):
            target = self.folder / f"mpi{count}"
            done = harness.run([*mpirun, count, *self.command(target, "auto")])
            assert done.returncode == 0, done.stderr.decode()
            harness.check_finished(target, self.finished, f"mpirun -n {count}")
        target = self.folder / "mpi_killed"
        script = ('[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$@"; '
                  'exec strace -f -qq -o /dev/null -e trace=fsync '
                  '-e inject=fsync:signal=KILL:when=1 "$@"')
        done = harness.run([*mpirun, "2", "sh", "-c", script, "sh",
                            *self.command(target, "auto")])
        assert done.returncode != 0, "mpirun has not noticed that a process was killed"
        where = "mpirun, one killed"
        assert not harness.check_nothing_looks_finished(target, self.finished, {}, where)
        done = harness.run([*mpirun, "2", *self.command(target, "auto")])
        assert done.returncode == 0, done.stderr.decode()
        harness.check_finished(target, self.finished, where)
        print("Open MPI: 2 and 4 processes, and one killed", flush=True)

    def network_namespaces(self):
        apart = ["unshare", "--net"] if os.geteuid() == 0 else \
            ["unshare", "--user", "--map-root-user", "--net"]
        if harness.run([*apart, "true"]).returncode != 0:
            harness.did_not_run("network namespaces", "none is to be had here (unshare --net)")
            return
        target = self.folder / "namespaces"
        running = [subprocess.Popen([*apart, *self.command(target, f"{i}/2")],
                                    stderr=subprocess.PIPE) for i in range(2)]
        errors = [process.communicate(timeout=harness.TIMEOUT)[1].decode() for process in running]
        assert all(process.returncode == 0 for process in running), errors
        harness.check_finished(target, self.finished, "two network namespaces")
        print("two network namespaces that share a folder", flush=True)


def main():
    options = harness.arguments("reshard", "gen", every=True)
    harness.need_programs("strace", "mpirun", "unshare")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        harness.generate(options.gen, folder / "sample", *SPLIT)
        strategy = folder / "sample" / "strategy" / "strategy_0.ckpt"
        whole = Shards(harness.golden_job(options.reshard, GOLDEN), folder / "whole")
        split = Shards(harness.Job(options.reshard, folder / "sample", strategy, None,
                                   "--jobs", "1"), folder / "split")
        unified = Shards(harness.unified_job(options.reshard, FOLDER), folder / "unified")
        hugging_face = Shards(harness.hugging_face_job(options.reshard, FOLDER),
                              folder / "hugging_face")
        for shards, kind in ((unified, "unified"), (hugging_face, "hf")):
            for name, content in harness.safetensors_outputs(kind, FOLDER).items():
                assert shards.finished[name] == content, f"{kind}: {name} is not as it should be"
            shards.kill_everywhere(options)
            for count in (2, 3):
                shards.race(count, 0)
        for shards in (whole, split):
            shards.kill_everywhere(options)
            for round_ in range(8 if shards is whole else 2):
                for count in (2, 3, 5):
                    shards.race(count, round_)
            shards.open_mpi()
            shards.network_namespaces()
        whole.stands_still()
        whole.other_plan_is_refused(harness.golden_job(options.reshard, "case_010"))


main()
