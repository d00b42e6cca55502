"""What the fault tests share: jobs, reshard under strace, and what a target folder may look like.

A test says `did not run: PART: WHY` of what it cannot do on this machine; tools/test.sh shows those
lines in its table, and fails for them where CI=true.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DATA = pathlib.Path(__file__).resolve().parent.parent / "golden" / "data"
CASES = DATA / "convert"
SAFETENSORS_CASES = DATA / "safetensors"
SHARDED_CASES = DATA / "sharded"
MANIFEST = "manifest.json"
CHECKSUMS = "checksums.xxh128"
WORK_FOLDER = ".reshard"
PROBE = ".reshard_probe"  # an empty file that is moved through folders, to prove that moves work

# What a run may end with when something fails below it: inputs, I/O, memory, another run.
DOCUMENTED = {3, 4, 5, 6}
TIMEOUT = 120  # seconds; a run that takes as long hangs
MEMORY = "/dev/shm"
NAMESPACE = "RESHARD_FAULT_NAMESPACE"  # set in a test that enter_mount_namespace started

# How an interrupted run may be taken up.
AGAIN = ((), ("--resume",), ("--resume=verify",))


def arguments(*tools, optional=(), seed=False, every=False):
    """Parses the command line of a test: paths of what it runs, of which some are optional; a seed
    where it is random; --every N where it may be asked for a sample (see sample).

    Without --seed the seed is that of the environment (RESHARD_TEST_SEED, which tools/test.sh sets
    and prints), else a random one; of a sample alone 0, so that a quick test is always the same.
    """
    parser = argparse.ArgumentParser()
    for tool in tools:
        parser.add_argument(f"--{tool}", required=True, type=os.path.abspath)
    for tool in optional:
        parser.add_argument(f"--{tool}", type=os.path.abspath)
    if seed or every:
        default = os.environ.get("RESHARD_TEST_SEED")
        if default is None:
            default = random.SystemRandom().randrange(1 << 32) if seed else 0
        parser.add_argument("--seed", type=int, default=int(default))
    if every:
        parser.add_argument("--every", type=int, default=1)
    parsed = parser.parse_args()
    if seed or (every and parsed.every > 1):
        print(f"seed {parsed.seed} (--seed)", flush=True)
    return parsed


def sample(points, options):
    """Returns each N-th of `points`, by --every; which one of N comes first, the seed says."""
    return points[options.seed % options.every::options.every]


def did_not_run(part, why):
    print(f"did not run: {part}: {why}", flush=True)


def need_programs(*names):
    """Ends the test where a program that tools/deps.sh installs is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} missing: `tools/deps.sh test` installs what the tests need")


def scratch(place=None):
    """A folder for the test, in `place` or where temporary files go: on a disk, probably."""
    return tempfile.TemporaryDirectory(prefix="reshard-fault-", dir=place)


def scratch_in_memory():
    """A folder for a test of many small runs, of which a disk would flush each."""
    return scratch(MEMORY if os.access(MEMORY, os.W_OK) else None)


def enter_mount_namespace(part):
    """Starts the test again in a mount namespace of its own, where it may mount file systems.

    Returns whether it runs in one; where none is to be had, says that `part` did not run.
    """
    if NAMESPACE in os.environ:
        return True
    as_root = ["unshare", "--mount"]
    as_user = ["unshare", "--user", "--map-root-user", "--mount"]
    for way in (as_root, as_user) if os.geteuid() == 0 else (as_user,):
        if run([*way, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).returncode == 0:
            os.environ[NAMESPACE] = "1"
            sys.stdout.flush()
            os.execvp(way[0], [*way, sys.executable, *sys.argv])
    did_not_run(part, "nothing can be mounted here, not even in a user namespace (unshare -Urm)")
    return False


class Job:
    """A conversion: where it comes from and how it is called."""

    command_name = "convert"

    def __init__(self, reshard, source, src_strategy, dst_strategy, *more):
        self.reshard = reshard
        self.source = pathlib.Path(source)
        self.options = []
        if src_strategy:
            self.options += ["--src-strategy", str(src_strategy)]
        if dst_strategy:
            self.options += ["--dst-strategy", str(dst_strategy)]
        self.options += more

    def command(self, target, *more):
        return [self.reshard, self.command_name, str(self.source), str(target), *self.options, "-q", *more]

    def snapshot(self, folder):
        """What runs of the job have in common of a folder: as the function of this name."""
        return snapshot(folder)


def can_mount_fuse(part, fault_fs):
    """Enters a mount namespace; where there can be no `fault_fs` says why and returns False."""
    if not os.path.exists(fault_fs):
        did_not_run(part, "libfuse3-dev was missing when this was built")
    elif not os.access("/dev/fuse", os.R_OK | os.W_OK):
        did_not_run(part, "no /dev/fuse, or no permission")
    else:
        return enter_mount_namespace(part)
    return False


def golden_job(reshard, case, *more):
    """One of MindSpore's own conversions, with one worker, so that calls come in one order."""
    folder = CASES / case
    description = json.loads((folder / "case.json").read_text())
    return Job(reshard, folder / "src", folder / description["src_strategy"],
               folder / description["dst_strategy"], "--prefix", description["prefix"],
               "--jobs", "1", *more)


def unified_job(reshard, case):
    """One of MindSpore's unified folders: parts, what is in no strategy, and a map of them."""
    folder = SAFETENSORS_CASES / "unified" / case
    description = json.loads((folder / "case.json").read_text())
    return Job(reshard, folder / "src", folder / description["src_strategy"], None, "--format",
               "unified", "--part-size", str(description["part_size"]), "--jobs", "1")


def hugging_face_job(reshard, case):
    """One of Hugging Face's folders: shards, and an index of them."""
    folder = SAFETENSORS_CASES / "hf" / case
    description = json.loads((folder / "case.json").read_text())
    return Job(reshard, folder / "src", folder / description["src_strategy"], None, "--format",
               "huggingface", "--shard-size", str(description["shard_size"]), "--jobs", "1")


def from_hugging_face_job(reshard, case):
    """A Hugging Face folder cut anew for ranks, under other names."""
    folder = SAFETENSORS_CASES / "hf" / case
    description = json.loads((folder / "case.json").read_text())
    return Job(reshard, folder / description["src"], None, folder / description["dst_strategy"],
               "--format", description["format"], "--names", description["names"], "--name-map",
               str(folder / description["name_map"]), "--jobs", "1")


def from_mindformers_job(reshard, case):
    """A checkpoint of MindFormers 2.0, whose metadata says where the slices are, in whole files."""
    return Job(reshard, SHARDED_CASES / "mindformers2" / case / "input", None, None, "--format",
               "huggingface", "--jobs", "1")


class EncryptedJob(Job):
    """A golden job with encrypted outputs, which are other bytes each time but decrypt to the same.

    What they decrypt to is OpenSSL's word, not reshard's; AES-GCM is AES-CTR but for its tag.
    """

    MAGIC = 0x7F3A5ED8.to_bytes(4, "little")  # of a block of AES-GCM
    KEY = b"0123456789abcdef"
    WINDOW = 16  # so many plain bytes are taken for no coincidence

    def __init__(self, reshard, case, folder):
        self.key, self.other_key = folder / "key", folder / "other_key"
        self.key.write_bytes(self.KEY)
        self.other_key.write_bytes(self.KEY[::-1])
        plain = golden_job(reshard, case)
        super().__init__(reshard, plain.source, None, None, *plain.options, "--encrypt", "AES-GCM")
        self.plain = {
            content[at:at + self.WINDOW] for content in golden_outputs(case).values()
            for at in range(len(content) - self.WINDOW)
            # What names and structure are made of is no secret: part records have it, too.
            if len(set(content[at:at + self.WINDOW])) > self.WINDOW // 2
            and max(content[at:at + self.WINDOW]) >= 0x80}
        assert len(self.plain) > 1000, "too few bytes to look for"
        assert all(self.has_plain(content) for content in golden_outputs(case).values())

    def command(self, target, *more, key=None):
        return [*super().command(target, *more), "--encrypt-key-file", str(key or self.key)]

    def has_plain(self, content):
        return any(content[at:at + self.WINDOW] in self.plain for at in range(len(content)))

    def snapshot(self, folder):
        return {name: self.decrypted(content) if content.startswith(self.MAGIC) else content
                for name, content in snapshot(folder).items()}

    def decrypted(self, content):
        """The plain bytes of all blocks: magic, tag (16), rest (4), 16 (4), vector (16), length (4)."""
        plain = b""
        while content:
            assert content.startswith(self.MAGIC), "no block"
            vector, length = content[28:44], int.from_bytes(content[44:48], "little")
            counter = vector[:12] + (2).to_bytes(4, "big")
            plain += subprocess.run(
                ["openssl", "enc", "-d", "-aes-128-ctr", "-K", self.KEY.hex(), "-iv", counter.hex()],
                input=content[48:48 + length], stdout=subprocess.PIPE, check=True).stdout
            content = content[48 + length:]
        return plain

    def check_left(self, target, where):
        """No plain bytes are in any file that is left, whatever it is called, and no key."""
        for path in pathlib.Path(target).rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert not self.has_plain(content), f"{where}: plain bytes in {path}"
            assert self.KEY not in content, f"{where}: the key in {path}"

    def check_other_key(self, target, where):
        """A run with another key does not take up what is left of a job, and changes nothing."""
        def everything():
            return {path: path.is_file() and path.read_bytes()
                    for path in pathlib.Path(target).rglob("*") if path.name != "lock"}
        before = everything()
        if not any(path.name == "job" for path in before):
            return False  # a run with that key would be the first
        done = run(self.command(target, "--resume", key=self.other_key))
        assert done.returncode == 3 and b"reshard: error: mismatch: " in done.stderr, \
            f"{where}: with another key: exit {done.returncode}: {done.stderr.decode()}"
        assert everything() == before, f"{where}: a run with another key changed what was left"
        return True


class RecodeJob(Job):
    """Files in another format."""

    command_name = "recode"

    def __init__(self, reshard, case):
        folder = SAFETENSORS_CASES / "recode" / case
        description = json.loads((folder / "case.json").read_text())
        super().__init__(reshard, folder / description["src"], None, None, "--format",
                         description["format"], "--jobs", "1")


def generate(gen, folder, *options):
    """Runs reshard-gen."""
    subprocess.run([gen, str(folder), *options], check=True, stderr=subprocess.DEVNULL)


def without_stamps(manifest):
    """A manifest without the times and inodes of sources, and without its own digest if it has
    these. Any other byte of it counts."""
    stamps = re.compile(rb'"(mtime_ns|inode)": *\d+')
    if not stamps.search(manifest):
        return manifest
    return re.sub(rb'"digest": *"[0-9a-f]{32}"(?=\s*}\s*\Z)', b'"digest": ""',
                  stamps.sub(rb'"\1": 0', manifest))


def snapshot(folder):
    """The content of each file below `folder`: path to bytes. Without what is unfinished, without
    origin.jsonl, which has a line more for each run, and without what the manifest says of the
    sources' times and inodes, which are others for each copy of them."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)):
                without_stamps(path.read_bytes()) if path.name == MANIFEST else path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in (PROBE, "origin.jsonl")
            and WORK_FOLDER not in path.relative_to(folder).parts}


def golden_outputs(case):
    return snapshot(CASES / case / "expected")


def safetensors_outputs(kind, case):
    return snapshot(SAFETENSORS_CASES / kind / case / "expected")


def run(command, timeout=TIMEOUT, **more):
    """Runs a command to its end; never raises for its exit code."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, check=False, **more)


def strace(command, *options, log=os.devnull):
    return ["strace", "-f", "-qq", "-o", str(log), *options, *command]


CALL = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


def calls_of(command, log, codes=(0,)):
    """Returns at which numbers a run makes each system call, counted in each thread by itself.

    Left out are those that the program loader uses up: it is not ours, and ends by giving back the
    list of libraries.
    """
    done = run(["strace", "-f", "-qq", "-o", str(log), *command])
    assert done.returncode in codes, done.stderr.decode()
    counts = collections.Counter()
    of_loader = None
    numbers = collections.defaultdict(set)
    for thread, call in CALL.findall(log.read_text()):
        counts[thread, call] += 1
        if of_loader is None:
            if call == "munmap":
                of_loader = {call: count for (_, call), count in counts.items()}
        elif counts[thread, call] > of_loader.get(call, 0):
            numbers[call].add(counts[thread, call])
    return numbers


def run_all(function, calls):
    """Calls `function` with each of the `calls`' arguments, one on each core at a time.

    Returns how often it returned what; ends the test with the first failures where there are any.
    """
    outcomes = collections.Counter()
    failures = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in concurrent.futures.as_completed([pool.submit(function, *call)
                                                     for call in calls]):
            if done.exception() is None:
                outcomes[done.result()] += 1
            else:
                failures.append(repr(done.exception()))
    if failures:
        sys.exit("\n".join([*failures[:20], f"{len(failures)} of {len(calls)} runs failed"]))
    return outcomes


def undisturbed(job, target, *more):
    """Runs the job into `target` and returns what it must look like."""
    done = run(job.command(target, *more))
    assert done.returncode == 0, done.stderr.decode()
    return job.snapshot(target)


def check_nothing_looks_finished(target, finished, before, where, prunes=False, look=snapshot):
    """A set is whole and new, or as it was before, or has no manifest and no half of a file.

    `finished` and `before` are snapshots; `prunes`: what was there before goes only after the new
    set is in place. `look` takes them. Returns whether the new set is there.
    """
    now = look(target) if os.path.isdir(target) else {}
    if prunes and os.path.lexists(os.path.join(target, WORK_FOLDER)) \
            and now.get(CHECKSUMS) == finished.get(CHECKSUMS):
        now = {name: content for name, content in now.items()
               if name in finished or content != before.get(name)}
    if now.get(MANIFEST) == finished[MANIFEST]:
        assert now == finished, f"{where}: a manifest, but {difference(now, finished)}"
        return True
    if MANIFEST in now:
        assert now == before, f"{where}: the old manifest, but {difference(now, before)}"
        return False
    for name, content in now.items():
        assert content in (finished.get(name), before.get(name)), f"{where}: {name} is not whole"
    if CHECKSUMS in now:  # without the manifest, but no list of what is not there
        listed = [{**files, MANIFEST: None} for files in (finished, before)]
        assert {**now, MANIFEST: None} in listed, f"{where}: checksums of other files"
    return False


def check_finished(target, finished, where, look=snapshot):
    """The whole set is there and nothing of reshard's own besides."""
    now = look(target)
    assert now == finished, f"{where}: {difference(now, finished)}"
    assert not os.path.lexists(os.path.join(target, WORK_FOLDER)), f"{where}: {WORK_FOLDER} stays"
    assert not list(pathlib.Path(target).rglob(PROBE)), f"{where}: {PROBE} stays"


def difference(now, expected):
    wrong = sorted(name for name in now if name in expected and now[name] != expected[name])
    return (f"missing {sorted(expected.keys() - now.keys())}, "
            f"more {sorted(now.keys() - expected.keys())}, other content {wrong}")


def check_documented(done, where):
    """The run ended by itself, with success or a code and a message of the documents."""
    error = done.stderr.decode(errors="replace")
    assert done.returncode == 0 or done.returncode in DOCUMENTED, \
        f"{where}: exit {done.returncode}: {error}"
    if done.returncode != 0:
        assert "reshard: error: " in error, f"{where}: exit {done.returncode} without a message"


def complete(job, target, finished, where, *more):
    """Runs the same command again and checks that the set is whole then."""
    again = run(job.command(target, *more))
    published = again.returncode == 6 and os.path.exists(os.path.join(target, MANIFEST))
    assert again.returncode == 0 or published, \
        f"{where}: again: exit {again.returncode}: {again.stderr.decode()}"
    check_finished(target, finished, f"{where}: again", job.snapshot)


class Stopped:
    """A command under strace, stopped by the system after its call number `when` of `call`.

    While the block of its `with` runs, the process stands still; then it goes on. `failing` is
    another fault in strace's notation. `process` is strace, whose exit code is the command's.
    """

    STOP = re.compile(r"^(\d+) +--- stopped by SIGSTOP ---", re.MULTILINE)

    def __init__(self, command, call, when, log, failing=None):
        self.log = pathlib.Path(log)
        self.log.unlink(missing_ok=True)
        options = ["-e", f"trace={call}", "-e", f"inject={call}:signal=STOP:when={when}"]
        if failing:
            options[1] += "," + failing.partition(":")[0]
            options += ["-e", f"inject={failing}"]
        self.process = subprocess.Popen(strace(command, *options, log=log),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.stopped = None  # process id, or None where it ended before that call

    def __enter__(self):
        end = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            found = self.STOP.search(self.log.read_text()) if self.log.exists() else None
            if found:
                self.stopped = int(found.group(1))
                break
            assert time.monotonic() < end, "neither stopped nor ended"
            time.sleep(0.002)
        return self

    def __exit__(self, *_):
        self.go_on()

    def go_on(self):
        if self.stopped is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.stopped, signal.SIGCONT)

    def finish(self):
        """Waits for the end; returns it as subprocess.run does."""
        end = time.monotonic() + TIMEOUT
        while self.process.poll() is None:  # each thread counts its calls and stops all by itself
            self.go_on()
            time.sleep(0.002)
            assert time.monotonic() < end, "does not end"
        out, error = self.process.communicate()
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, error)
