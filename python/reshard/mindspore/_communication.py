"""The rank of this process, out of what launchers put into the environment."""

from __future__ import annotations

import os

from .. import _errors

# MindSpore's msrun, Open MPI's and MPICH's mpirun, Slurm's srun, torchrun: (rank, number of ranks).
_VARIABLES = (
    ("RANK_ID", "RANK_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)

__all__ = ["get_group_size", "get_rank", "init"]


def _number(which: int, default: int) -> int:
    for pair in _VARIABLES:
        if pair[0] not in os.environ:
            continue
        text = os.environ.get(pair[which], str(default))
        if not text.isdecimal():
            raise _errors.InvalidArgumentError(
                f"${pair[which]}: expected a number, found {text!r}"
            )
        return int(text)
    return default


def init(backend_name: str | None = None) -> None:
    """Does nothing: there is no communication between the processes."""


def get_rank(group: str | None = None) -> int:
    """Returns the rank of this process, 0 where no launcher says one."""
    return _number(0, 0)


def get_group_size(group: str | None = None) -> int:
    """Returns how many processes there are, 1 where no launcher says it."""
    return _number(1, 1)
