"""What type checkers, strict ones, have to take: the public calls as a program uses them."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reshard


def tell(progress: reshard.Progress) -> None:
    print(f"{progress.phase}: {progress.done} of {progress.total}")


def read(folder: pathlib.Path) -> dict[str, NDArray[Any]]:
    with reshard.open(folder, folder / "strategy", io="pread") as checkpoint:
        weight: reshard.Tensor = checkpoint["lm_head.weight"]
        rows: NDArray[Any] = weight.read(np.s_[:2])
        view: NDArray[Any] = weight.mapped[0:1]
        for shard in weight.shards:
            print(shard.offsets, shard.ranks)
        for piece in weight.locate():
            print(piece.path, piece.content)
        notes: dict[str, str] = checkpoint.texts
        print(rows.shape, view.shape, notes, checkpoint.step)
        return checkpoint.read(["lm_head.weight"], jobs=2, progress=tell)


def convert(source: pathlib.Path, target: pathlib.Path) -> int:
    report = reshard.convert(
        source,
        target,
        src_strategy=source / "strategy",
        format="huggingface",
        dtype={"*": "float16"},
        shard=(0, 1),
        progress=tell,
        cancel=threading.Event(),
    )
    sizes: list[int] = [file.size for file in report.files]
    warnings: list[str] = [warning.code for warning in report.warnings]
    print(warnings, report.to_dict()["seconds"])
    checked: reshard.VerifyReport = reshard.verify(target)
    if not checked.ok:
        for damage in checked.damages:
            print(damage.path, damage.kind)
    return sum(sizes)


def convert_by_ray(source: pathlib.Path, target: pathlib.Path) -> reshard.ConvertReport:
    report = reshard.ray.convert(source, target, tp=2, workers=4, resources={"disk": 1}, progress=tell)
    return reshard.ConvertReport.of_shares([report])


def look(folder: pathlib.Path) -> None:
    try:
        found: reshard.InspectReport = reshard.inspect(folder, include="*.weight")
    except reshard.NotFoundError as error:
        print(error.code, error.errno)
        return
    for checkpoint in found.checkpoints:
        for parameter in checkpoint.parameters:
            print(parameter.name, parameter.shape, parameter.bytes)
    print(found.totals.by_dtype["BFloat16"].bytes)
    strategy: reshard.Strategy = reshard.read_strategy(folder / "strategy")
    print(strategy.meaning, [layout.device_matrix for layout in strategy.parameters])
    for rank, ranks in reshard.all_source_ranks(src_strategy=folder / "strategy"):
        print(rank, ranks)


def frameworks(folder: pathlib.Path) -> None:
    # What get_tensor and read return; t[...] is always NumPy's.
    numbers: dict[str, NDArray[Any]] = reshard.open(folder).read()
    checkpoint = reshard.open(folder, framework="torch")
    print(len(numbers), checkpoint.get_tensor("w"), checkpoint["w"][0])


def count(checkpoint: reshard.Checkpoint) -> int:
    array: NDArray[Any] = checkpoint.get_tensor("w")
    return array.size
