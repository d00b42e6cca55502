#!/usr/bin/env python3
"""Conversions of more than a GiB on a machine of 256 MiB, and in a control group of 64 MiB; there also
one of many parameters and one of many ranks.

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
# What is held of names, layouts and files: 9,003 tiny parameters; 256 ranks.
TINY = ["--hidden", "16", "--ffn", "16", "--vocab", "256", "--no-optimizer"]
PARAMETERS = [*TINY, "--layers", "1000"]
RANKS = [*TINY, "--layers", "1"]
# Of each conversion: the model, and how it is cut before and after.
CONVERSIONS = {
    "large": (MODEL, ["--tp", "4"], ["--tp", "2"]),
    "parameters": (PARAMETERS, ["--tp", "2"], ["--tp", "4"]),
    "ranks": (RANKS, ["--tp", "8", "--dp", "32"], ["--tp", "4", "--dp", "64"]),
}

# The first process of the machine: runs the conversions and says what they took.
FIRST_PROCESS = """#!/bin/sh
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd {work}
exec > machine.log 2>&1
grep MemTotal /proc/meminfo
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
{conversions}
echo o > /proc/sysrq-trigger
sleep 60
"""

CONVERSION = """
{machine} && echo {name} machine done
group=/sys/fs/cgroup/{name}
mkdir $group
echo {group} > $group/memory.max
(sh -c 'echo $PPID' > $group/cgroup.procs && exec {in_group}) && echo {name} group done
echo "{name} peak $(cat $group/memory.peak)"
echo "{name} $(grep ^max $group/memory.events)"
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
        conversions = ""
        for name, (model, before, after) in CONVERSIONS.items():
            place = work / name
            place.mkdir()
            harness.generate(tools.gen, place / "src", *model, *before)
            harness.generate(tools.gen, place / "to", *model, *after, "--strategy-only")
            job = harness.Job(tools.reshard, place / "src", place / "src/strategy",
                              place / "to/strategy")
            done = harness.run(job.command(place / "expected"))
            assert done.returncode == 0, done.stderr.decode()
            limited = job.command(place / "group", "--memory-limit", str(LIMIT))
            conversions += CONVERSION.format(
                name=name, group=GROUP, machine=" ".join(job.command(place / "machine")),
                in_group=" ".join(limited))

        booted = boot(work, FIRST_PROCESS.format(work=work, conversions=conversions), tools.shim)
        log = work / "machine.log"
        assert log.exists(), f"the machine did not start: {booted.stdout.decode()[-2000:]}"
        said = log.read_text()
        print(said, flush=True)
        for name in CONVERSIONS:
            check(work / name, name, said)


def check(place, name, said):
    """Checks what the conversion `name` wrote, and what the machine's log says of it."""
    for target in ("machine", "group"):
        assert f"{name} {target} done" in said, f"{name}, {target}: not converted"
        for path in sorted((place / "expected").rglob("*")):
            other = place / target / path.relative_to(place / "expected")
            if path.name == harness.MANIFEST:
                same = (harness.without_stamps(path.read_bytes())
                        == harness.without_stamps(other.read_bytes()))
            else:
                same = path.is_dir() or filecmp.cmp(path, other, shallow=False)
            assert same, f"{other} differs"
    counts = {words[1]: int(words[2]) for words in map(str.split, said.splitlines())
              if len(words) == 3 and words[0] == name and words[2].isdigit()}
    assert counts["max"] == 0, f"{name}: came to the control group's limit {counts['max']} times"
    assert counts["peak"] <= LIMIT, f"{name}: {counts['peak']} bytes in the control group"


if __name__ == "__main__":
    main()
