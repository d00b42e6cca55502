"""What dropin_times.py measures, in a process of MindSpore's interpreter: one call, by MindSpore or
by reshard.mindspore. Prints seconds, and by how many bytes the peak of memory rose, as JSON."""

import hashlib
import importlib
import json
import pathlib
import sys
import time


def status(field):
    """A size of /proc/self/status, in bytes."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(field)


def digest(parameters):
    """A digest over names, dtypes, shapes and contents."""
    found = hashlib.sha256()
    for name, parameter in parameters.items():
        found.update(f"{name} {parameter.dtype} {parameter.shape}".encode())
        found.update(parameter.data.get_bytes())
    return found.hexdigest()


def main():
    module, call, with_digest, *arguments = sys.argv[1:]
    importlib.import_module("mindspore")
    function = getattr(importlib.import_module(module), call)
    before = status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew.
    start = time.monotonic()
    returned = function(*arguments)
    seconds = time.monotonic() - start
    print(json.dumps({"seconds": seconds, "memory": status("VmHWM") - before,
                      "digest": digest(returned) if with_digest == "digest" else None}))


if __name__ == "__main__":
    main()
