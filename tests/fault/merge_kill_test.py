#!/usr/bin/env python3
"""Kills a merge, and makes its calls fail, wherever it changes a folder or a file or makes it
durable.

Whatever the moment: OUT is not there, or what was there before, or whole; after a failure nothing
is left beside it; and the same command ends with the right bytes and nothing of its own left over.
"""

import pathlib
import shutil

import harness
import kill_points

SEGMENTS = harness.CASES.parent / "apis" / "segmented"


def main():
    options = harness.arguments("reshard")
    harness.need_programs("strace")
    with harness.scratch_in_memory() as name:
        folder = pathlib.Path(name)

        def command(target):
            return [options.reshard, "merge", "--segments", str(SEGMENTS), str(target / "out.ckpt"),
                    "--force", "--jobs", "1", "-q"]

        def prepare(target, before):
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            if before is not None:
                (target / "out.ckpt").write_bytes(before)

        parts = sorted(SEGMENTS.glob("*.ckpt"))
        whole = b"".join(part.read_bytes() for part in parts)
        target = folder / "target"
        for before in (None, b"old"):
            prepare(target, before)
            points = kill_points.of(command(target), folder / "log")
            assert (target / "out.ckpt").read_bytes() == whole
            outcomes = set()
            for call, when in points:
                for how in ("signal=KILL", "error=EIO"):
                    prepare(target, before)
                    where = f"{call} {when}, {how}, before: {before}"
                    done = harness.run(harness.strace(command(target), "-e", f"trace={call}", "-e",
                                                      f"inject={call}:{how}:when={when}"))
                    failed = how == "error=EIO"
                    expected = {0, 4} if failed else {-9}
                    assert done.returncode in expected, f"{where}: {done.stderr.decode()}"
                    there = harness.snapshot(target)
                    beside = set(there) - {"out.ckpt", "out.ckpt.reshard"}
                    assert not beside, f"{where}: {beside}"
                    assert there.get("out.ckpt") in (before, whole), f"{where}: not whole"
                    if failed and call not in ("unlink", "unlinkat"):
                        assert "out.ckpt.reshard" not in there, f"{where}: left behind"
                    outcomes.add((done.returncode, "out.ckpt.reshard" in there))
                    again = harness.run(command(target))
                    assert again.returncode == 0, f"{where}: {again.stderr.decode()}"
                    assert harness.snapshot(target) == {"out.ckpt": whole}, f"{where}: then"
            assert len(points) >= 4 and (-9, True) in outcomes and (4, False) in outcomes, outcomes
            print(f"{len(points)} points survived", flush=True)


main()
