#!/usr/bin/env python3
"""Kills a conversion at every system call that changes a folder or a file or makes it durable.

Whatever the moment: there is no manifest without all files, every file under a target name is
whole, and the same command, with or without --resume, ends with MindSpore's bytes and nothing of
its own left over. The run that takes a killed one up is killed in the same way.

Where the outputs are encrypted, plain bytes are looked for in everything that a killed run leaves,
and a run with another key does not take it up.
"""

import pathlib
import random
import shutil

import harness
import kill_points

CASE = "case_037"
LARGE = "case_013"  # of more ranks
UNIFIED = "case_000"
HUGGING_FACE = "case_000"
FROM_HUGGING_FACE = "case_003"
FROM_MINDFORMERS = "case_001"
RECODED = "case_004"
SECOND = 4  # each fourth call of the run that takes up, beginning with another one each time


def copy(state, target):
    shutil.rmtree(target, ignore_errors=True)
    if state.exists():
        shutil.copytree(state, target)


class Scenario:
    """A job, what its target looks like before it, and what it has to look like after it."""

    def __init__(self, job, folder, before_folder=None, more=()):
        self.job = job
        self.folder = folder
        self.more = more
        self.is_encrypted = isinstance(job, harness.EncryptedJob)
        self.refused = 0  # runs with another key
        self.before_folder = before_folder or folder / "nothing"
        self.before = harness.snapshot(self.before_folder)
        folder.mkdir()
        copy(self.before_folder, folder / "undisturbed")
        self.finished = harness.undisturbed(job, folder / "undisturbed", *more)
        copy(self.before_folder, folder / "counted")
        self.points = kill_points.of(job.command(folder / "counted", *more), folder / "log")

    def kill(self, target, point, how, where):
        """Runs the job until this point, and returns whether it came there."""
        call, when = point
        done = harness.run(harness.strace(
            self.job.command(target, *self.more, *how), "-e", f"trace={call}", "-e",
            f"inject={call}:signal=KILL:when={when}"))
        assert done.returncode in (-9, 0, 6), f"{where}: {done.returncode}: {done.stderr.decode()}"
        harness.check_nothing_looks_finished(target, self.finished, self.before, where,
                                             "--prune" in self.more, self.job.snapshot)
        if self.is_encrypted:
            self.job.check_left(target, where)
        return done.returncode == -9

    def kill_twice(self, number, point):
        """Kills at this point, then runs that take up what was left.

        Returns how many of the kills came to their point, and how many were tried.
        """
        state = self.folder / f"state{number}"
        target = self.folder / f"target{number}"
        copy(self.before_folder, state)
        where = f"{self.job.source.parent.name}, killed at {point}"
        kills = int(self.kill(state, point, (), where))
        if self.is_encrypted:
            self.refused += self.job.check_other_key(state, where)
        how = harness.AGAIN[number % len(harness.AGAIN)]
        copy(state, target)
        points = kill_points.of(self.job.command(target, *self.more, *how),
                             self.folder / f"log{number}")
        seconds = points[number % SECOND::SECOND]
        for i, second in enumerate(seconds):
            copy(state, target)
            both = f"{where}, then at {second} {' '.join(how)}"
            kills += self.kill(target, second, how, both)
            again = harness.AGAIN[i % len(harness.AGAIN)]
            harness.complete(self.job, target, self.finished, both, *self.more, *again)
        harness.complete(self.job, state, self.finished, where, *self.more, *how)
        shutil.rmtree(state)
        shutil.rmtree(target)
        return kills, 1 + len(seconds)


def main():
    options = harness.arguments("reshard", every=True)
    harness.need_programs("openssl", "strace")
    with harness.scratch_in_memory() as folder:
        folder = pathlib.Path(folder)
        job = harness.golden_job(options.reshard, CASE)
        old = folder / "old"
        harness.undisturbed(harness.golden_job(options.reshard, "case_010"), old)
        large = folder / "large"
        harness.undisturbed(harness.golden_job(options.reshard, LARGE), large)
        scenarios = (Scenario(job, folder / "new"),
                     Scenario(job, folder / "replace", old, ("--force",)),
                     Scenario(job, folder / "prune", large, ("--force", "--prune")),
                     Scenario(harness.unified_job(options.reshard, UNIFIED), folder / "unified"),
                     Scenario(harness.hugging_face_job(options.reshard, HUGGING_FACE),
                              folder / "hugging_face"),
                     Scenario(harness.from_hugging_face_job(options.reshard, FROM_HUGGING_FACE),
                              folder / "from_hugging_face"),
                     Scenario(harness.from_mindformers_job(options.reshard, FROM_MINDFORMERS),
                              folder / "from_mindformers"),
                     Scenario(harness.RecodeJob(options.reshard, RECODED), folder / "recode"),
                     # Each file is written to once more when its CRC is known.
                     Scenario(job, folder / "crc", more=("--crc", "--format", "safetensors")),
                     # Each block is written to once more when its tag is known.
                     Scenario(harness.EncryptedJob(options.reshard, CASE, folder),
                              folder / "encrypted"))
        expected = (*[harness.golden_outputs(CASE)] * 3,
                    harness.safetensors_outputs("unified", UNIFIED),
                    harness.safetensors_outputs("hf", HUGGING_FACE),
                    harness.safetensors_outputs("hf", FROM_HUGGING_FACE), {},
                    harness.safetensors_outputs("recode", RECODED), {},
                    harness.golden_outputs(CASE))
        for scenario, outputs in zip(scenarios, expected):
            for name, content in outputs.items():
                assert scenario.finished[name] == content, f"{name} is not what MindSpore wrote"
        for scenario in scenarios:
            points = list(enumerate(scenario.points))
            chosen = harness.sample(points, options)
            kills = harness.run_all(scenario.kill_twice, chosen)
            if scenario.is_encrypted and scenario.refused == 0:
                # A sample may have no point at which there is a job to try another key on.
                for number, point in random.Random(options.seed).sample(points, len(points)):
                    if scenario.refused > 0:
                        break
                    scenario.kill_twice(number, point)
            survived = sum(done * times for (done, _), times in kills.items())
            tried = sum(tries * times for (_, tries), times in kills.items())
            print(f"{scenario.folder.name}: {len(chosen)} points of {len(scenario.points)}, "
                  f"{survived} kills of {tried} survived", flush=True)
            # Threads come to their calls in another order each time: some points are passed.
            assert 2 * survived > tried > 0, "few kills: has strace stopped working?"
            assert not scenario.is_encrypted or scenario.refused > 0, "no other key was tried"


main()
