"""The moments at which the tests kill a run: its calls that change a file or a folder, or make one
durable.
"""

import harness

CALLS = ("mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir",
         "fallocate", "ftruncate", "write", "pwrite64", "pwritev", "fsync", "fdatasync")


def of(command, log):
    """Returns (call, number) of each in a run of `command`."""
    # A run that takes up one which had published all ends with 6: the set is there.
    numbers = harness.calls_of(command, log, codes=(0, 6))
    log.unlink()
    return [(call, when) for call in CALLS for when in sorted(numbers[call])]
