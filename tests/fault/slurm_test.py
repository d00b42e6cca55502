#!/usr/bin/env python3
"""Shards as tasks of a real Slurm: arrays, tasks of srun, a task that is killed and requeued, one
that runs again when the set is published.

Two nodes on this host, by daemons of the test's own in a folder of its own: a munged with its own
socket and key, slurmctld, two slurmd. Whoever runs the test, they run as that user. Whatever
happens, the set is what one run alone writes, byte for byte.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import time

import harness

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "docs/examples/slurm_convert_then_train.sh")
DAEMONS = ("munged", "slurmctld", "slurmd")
MODEL = ("--layers", "2", "--hidden", "128", "--ffn", "256", "--vocab", "512")
CONFIGURATION = """\
ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MinJobAge=3600
KillWait=3
SlurmdTimeout=10
MailProg=/bin/true
NodeName=n0 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=100
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=100
PartitionName=p Nodes=n0,n1 Default=YES State=UP MaxTime=60
"""


def until(condition, what):
    end = time.monotonic() + harness.TIMEOUT
    while not condition():
        assert time.monotonic() < end, f"waited for {what} in vain"
        time.sleep(0.05)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    """A cluster of two nodes, as long as the block of its `with` runs."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        # Without what a Slurm that this test runs in has set.
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLURM", "SBATCH", "PMI", "OMPI"))}
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")

    def __enter__(self):
        for name in ("munge", "state", "spool-n0", "spool-n1", "log"):
            (self.folder / name).mkdir(parents=True)
        munge = self.folder / "munge"
        for above in (munge, self.folder, self.folder.parent):
            above.chmod(0o711)  # munged wants its socket to be reached by all
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        user = subprocess.run(["id", "-un"], check=True, stdout=subprocess.PIPE).stdout.decode()
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(user=user.strip(), ports=free_ports(3), folder=self.folder))
        try:
            self.start("munged", "-F", f"--socket={munge}/sock", f"--key-file={munge}/key",
                       f"--log-file={munge}/log", f"--pid-file={munge}/pid",
                       f"--seed-file={munge}/seed")
            until(lambda: self.all_run() and (munge / "sock").exists(), "munged")
            self.start("slurmctld", "-D", "-i")
            for node in ("n0", "n1"):
                self.start("slurmd", "-D", "-N", node)
            until(self.is_idle, "two idle nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.SubprocessError):
            self.run("scancel", "--me", timeout=10)
            until(lambda: not self.run("squeue", "-h", timeout=10).stdout, "the end of all jobs")
        for daemon in reversed(self.daemons):  # munged last
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, name, *options):
        with open(self.folder / "log" / "daemons", "ab") as log:
            self.daemons.append(subprocess.Popen([daemon_path(name), *options], stdout=log,
                                                 stdin=subprocess.DEVNULL, stderr=log,
                                                 env=self.environment))

    def all_run(self):
        for daemon in self.daemons:
            assert daemon.poll() is None, (self.folder / "log" / "daemons").read_text()
        return True

    def is_idle(self):
        return self.all_run() and self.run("sinfo", "-h", "-o", "%D", "-t", "idle").stdout.strip() == b"2"

    def run(self, *command, **more):
        return harness.run([str(word) for word in command], env=self.environment, **more)

    def submit(self, script, *options):
        """Runs a job to its end. Returns its id and sbatch's exit code, which is the job's."""
        path = self.folder / "script"
        path.write_text(f"#!/bin/sh\n{script}\n")
        done = self.run("sbatch", "--parsable", "--wait", "-o", self.folder / "log" / "job-%A_%a",
                        *options, path)
        assert done.stdout.strip().isdigit(), done.stderr.decode()
        return done.stdout.decode().strip(), done.returncode

    def output(self, job, task=None):
        """What a job has written, or a task of an array."""
        return (self.folder / "log" / f"job-{job}_{4294967294 if task is None else task}") \
            .read_text()

    def state(self, job):
        """JobState, ExitCode, Restarts of a job."""
        shown = self.run("scontrol", "show", "job", job).stdout.decode()
        return [re.search(rf"\b{key}=(\S+)", shown).group(1)
                for key in ("JobState", "ExitCode", "Restarts")]

    def requeue(self, job, restarts):
        done = self.run("scontrol", "requeue", job)
        assert done.returncode == 0, done.stderr.decode()
        until(lambda: self.state(job)[0] in ("COMPLETED", "FAILED") and
              self.state(job)[2] == str(restarts), f"{job}, requeued")


def daemon_path(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


class Conversion:
    """One that is done again and again, into new targets."""

    def __init__(self, slurm, job, folder):
        self.slurm = slurm
        self.job = job
        self.folder = folder
        self.finished = harness.undisturbed(job, folder / "alone")
        self.target = None

    def begin(self, name):
        self.target = self.folder / name
        print(name, flush=True)
        return self.words()

    def words(self):
        return [part for part in self.job.command(self.target, "--shard", "auto") if part != "-q"]

    def check(self, code, output):
        assert code == 0, f"{self.target.name}: exit {code}: {output}"
        harness.check_finished(self.target, self.finished, self.target.name)
        assert not (self.target / harness.WORK_FOLDER).exists(), self.target.name

    def array(self, name, tasks, launcher=()):
        """Each task of an array is a shard. Returns the job's id."""
        command = [*launcher, *self.begin(name)]
        job, code = self.slurm.submit(f"exec {shlex.join(command)}", f"--array={tasks}")
        self.check(code, self.slurm.output(job, tasks.split("-", maxsplit=1)[0]))
        return job

    def tasks_of_srun(self):
        for name, options in (("2 tasks", ["--ntasks=2"]),
                              ("4 tasks on 2 nodes", ["--ntasks=4", "--nodes=2"])):
            command = self.begin(name)
            for again in (False, True):
                done = self.slurm.run("srun", *options, *command)
                error = done.stderr.decode()
                self.check(done.returncode, error)
                assert ("nothing to do: the set is already published" in error) == again, error
        command = self.begin("a batch script with srun")
        job, code = self.slurm.submit(f"srun {shlex.join(command)}", "--ntasks=2")
        self.check(code, self.slurm.output(job))
        command = self.begin("a batch script without srun")
        job, code = self.slurm.submit(f"exec {shlex.join(command)}", "--ntasks=2")
        assert code == 2 and "start it by srun" in self.slurm.output(job), self.slurm.output(job)
        assert not self.target.exists()

    def killed_and_requeued(self):
        command = shlex.join(self.begin("task 2 killed and requeued"))
        killed = shlex.join(["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fsync", "-e",
                             "inject=fsync:signal=KILL:when=1"])
        job, code = self.slurm.submit(
            f'[ "$SLURM_ARRAY_TASK_ID" != 2 ] || [ "${{SLURM_RESTART_COUNT-0}}" -gt 0 ] ||'
            f' {{ {killed} {command}; exit $?; }}\nexec {command}', "--array=0-3")
        assert code == 137, f"exit {code}: {self.slurm.output(job, 2)}"
        states = [self.slurm.state(f"{job}_{task}")[0] for task in range(4)]
        assert states == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"], \
            (states, [self.slurm.output(job, task) for task in range(4)])
        harness.check_nothing_looks_finished(self.target, self.finished, {}, self.target.name)
        done = self.slurm.run(self.job.reshard, "commit", self.target)
        assert done.returncode == 3 and b"2/4" in done.stderr, done.stderr.decode()
        alone, code = self.slurm.submit(f"exec {command}", "--array=2")
        said = self.slurm.output(alone, 2)
        assert code == 3 and "--shard 2/4" in said and "remove" not in said, said
        self.slurm.requeue(f"{job}_2", 1)
        assert self.slurm.state(f"{job}_2") == ["COMPLETED", "0:0", "1"], self.slurm.output(job, 2)
        self.check(0, "")
        return job

    def requeued_after_publication(self, job):
        print("task 3 requeued after publication", flush=True)
        self.slurm.requeue(f"{job}_3", 1)
        said = self.slurm.output(job, 3)
        assert self.slurm.state(f"{job}_3") == ["COMPLETED", "0:0", "1"], said
        assert "share 3/4: nothing to do: the set is already published" in said, said
        self.check(0, said)

    def tasks_in_python(self, python, package):
        """The call of docs/guide/python.md, in an array, and again when it is published."""
        target = pathlib.Path(self.begin("array of Python tasks")[3])
        strategies = [self.job.options[self.job.options.index(name) + 1]
                      for name in ("--src-strategy", "--dst-strategy")]
        code = (
            "import reshard; print(repr(reshard.convert("
            f"{str(self.job.source)!r}, {str(target)!r}, src_strategy={strategies[0]!r}, "
            f"dst_strategy={strategies[1]!r}, shard='auto', jobs=1).shard))")
        script = f"PYTHONPATH={shlex.quote(package)} exec {shlex.join([python, '-c', code])}"
        job, code = self.slurm.submit(script, "--array=0-3")
        said = [self.slurm.output(job, task) for task in range(4)]
        self.check(code, said)
        assert sum("published=True, already_published=False" in one for one in said) == 1, said
        self.slurm.requeue(f"{job}_1", 1)
        assert "already_published=True" in self.slurm.output(job, 1), self.slurm.output(job, 1)
        self.check(0, "")

    def submitted_by_a_task(self):
        """The variables of an array's task go on to the job that it submits."""
        command = self.begin("2 tasks of a job that an array's task submits")
        inner = self.slurm.folder / "inner"
        inner.write_text(f"#!/bin/sh\nsrun --ntasks=2 {shlex.join(command)}\n")
        outer, code = self.slurm.submit(
            f"exec sbatch --wait -n 2 -o {shlex.quote(str(inner))}.log {shlex.quote(str(inner))}",
            "--array=7")
        log = pathlib.Path(f"{inner}.log")
        self.check(code, log.read_text() if log.exists() else self.slurm.output(outer, 7))

    def example_script(self):
        """docs/examples: converts on both nodes, proves it, starts the training."""
        self.begin("docs/examples/slurm_convert_then_train.sh")
        log = self.slurm.folder / "log" / "example"
        options = dict(zip(self.job.options[::2], self.job.options[1::2]))
        where = {"SRC": self.job.source, "DST": self.target,
                 "SRC_STRATEGY": options["--src-strategy"],
                 "DST_STRATEGY": options["--dst-strategy"],
                 "PATH": f"{pathlib.Path(self.job.reshard).resolve().parent}:{os.environ['PATH']}"}
        for again in (False, True):
            done = harness.run(
                ["sbatch", "--wait", "-o", str(log), "--mem=50", EXAMPLE, "sh", "-c",
                 "echo trained as $SLURM_PROCID of $SLURM_NTASKS"],
                env={**self.slurm.environment, **{key: str(value) for key, value in where.items()}})
            said = log.read_text()
            self.check(done.returncode, said)
            assert all(f"trained as {task} of 2" in said for task in (0, 1)), said
            assert ("nothing to do: the set is already published" in said) == again, said


def main():
    options = harness.arguments("reshard", "gen", optional=("python", "package"))
    harness.need_programs("strace")
    missing = [name for name in DAEMONS if daemon_path(name) is None]
    if missing:
        harness.did_not_run("Slurm", f"{', '.join(missing)} missing (tools/deps.sh slurm)")
        return
    with harness.scratch() as folder:
        folder = pathlib.Path(folder)
        harness.generate(options.gen, folder / "src", *MODEL, "--tp", "4", "--dp", "2")
        harness.generate(options.gen, folder / "new", *MODEL, "--tp", "2", "--pp", "2",
                         "--strategy-only")
        job = harness.Job(options.reshard, folder / "src", folder / "src" / "strategy",
                          folder / "new" / "strategy")
        with Slurm(folder / "slurm") as slurm:
            conversion = Conversion(slurm, job, folder)
            conversion.array("array", "0-3")
            conversion.tasks_of_srun()
            conversion.requeued_after_publication(conversion.killed_and_requeued())
            conversion.array("array, one at a time", "0-3%1")
            conversion.array("array from 5", "5-8")
            conversion.array("array with a step", "0-6:2")
            conversion.array("array by srun with PMI", "0-3", ("srun", "--mpi=pmi2"))
            conversion.submitted_by_a_task()
            if options.package is None:
                harness.did_not_run("Slurm", "tasks in Python: the package was not built")
            else:
                conversion.tasks_in_python(options.python, options.package)
            conversion.example_script()


main()
