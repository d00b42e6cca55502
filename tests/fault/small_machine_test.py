#!/usr/bin/env python3
"""Conversions of more than a GiB on a machine of 256 MiB, and in a control group of 64 MiB.

The machine is user-mode Linux, so no control group of this one is touched, and no privilege is
needed. Its memory is all there is for programs and for the page cache; the control group counts
both, too, and must stay within --memory-limit, kernel memory included: what reshard holds is bounded
by reshard, not by a kernel that takes pages away again.
"""

import filecmp
import os
import pathlib

import harness

PROGRAM = "linux.uml"
MACHINE = 256 << 20
GROUP = 64 << 20
LIMIT = 48 << 20
# More than the machine has, several times: 1.3 GB, of which the columns are cut.
MODEL = ["--layers", "4", "--hidden", "2048", "--ffn", "8192", "--vocab", "16384",
         "--dtype", "Float32", "--no-optimizer", "--cut", "columns"]

# The first process of the machine: runs the conversions and says what they took.
FIRST_PROCESS = """#!/bin/sh
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd {work}
exec > machine.log 2>&1
grep MemTotal /proc/meminfo
{machine} && echo machine done
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job
echo {group} > /sys/fs/cgroup/job/memory.max
(sh -c 'echo $PPID' > /sys/fs/cgroup/job/cgroup.procs && exec {in_group}) && echo group done
echo "peak $(cat /sys/fs/cgroup/job/memory.peak)"
cat /sys/fs/cgroup/job/memory.events
echo o > /proc/sysrq-trigger
sleep 60
"""


def boot(work, script, shim):
    """Starts the machine, with this one's files, and waits until it switches itself off."""
    first = work / "first_process"
    first.write_text(script)
    first.chmod(0o755)
    # It has one processor, and its processes hand over to each other all the time: on one core of
    # ours that takes a third of the time.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return harness.run(
        [PROGRAM, f"mem={MACHINE >> 20}M", "rootfstype=hostfs", "rootflags=/", "rw",
         f"init={first}", "con=null", "con0=fd:0,fd:1"],
        timeout=600, env={**os.environ, "LD_PRELOAD": shim, "TMPDIR": str(work)})


def main():
    tools = harness.arguments("reshard", "gen", "shim")
    harness.need_programs(PROGRAM)
    with harness.scratch() as folder:
        work = pathlib.Path(folder)
        harness.generate(tools.gen, work / "4", *MODEL, "--tp", "4")
        harness.generate(tools.gen, work / "2", *MODEL, "--tp", "2", "--strategy-only")
        job = harness.Job(tools.reshard, work / "4", work / "4/strategy", work / "2/strategy")
        done = harness.run(job.command(work / "expected"))
        assert done.returncode == 0, done.stderr.decode()

        def command(target, *more):
            return " ".join(job.command(work / target, *more))

        booted = boot(work, FIRST_PROCESS.format(
            work=work, group=GROUP, machine=command("machine"),
            in_group=command("group", "--memory-limit", str(LIMIT))), tools.shim)
        log = work / "machine.log"
        assert log.exists(), f"the machine did not start: {booted.stdout.decode()[-2000:]}"
        said = log.read_text()
        print(said, flush=True)
        for target in ("machine", "group"):
            assert f"{target} done" in said, f"{target}: not converted"
            for path in sorted((work / "expected").rglob("*")):
                other = work / target / path.relative_to(work / "expected")
                assert path.is_dir() or filecmp.cmp(path, other, shallow=False), f"{other} differs"
        counts = dict(line.split() for line in said.splitlines() if len(line.split()) == 2)
        assert int(counts["max"]) == 0, f"came to the control group's limit {counts['max']} times"
        assert int(counts["peak"]) <= LIMIT, f"{counts['peak']} bytes in the control group"


if __name__ == "__main__":
    main()
