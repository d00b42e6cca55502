"""The rank of this process, from the environment of its launcher."""

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
    """Has no effect: the processes do not communicate."""


def get_rank(group: str | None = None) -> int:
    """Returns the rank of this process, 0 without a launcher."""
    return _number(0, 0)


def get_group_size(group: str | None = None) -> int:
    """Returns the number of processes, 1 without a launcher."""
    return _number(1, 1)
