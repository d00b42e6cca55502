"""What the functions of MindSpore and of reshard.mindspore state of redundancy: the metadata of
every safetensors file that they write, of sources that state it and of sources that do not."""

import json
import pathlib
import tempfile

import mindspore
import numpy as np

import mindspore_side  # pylint: disable=unused-import  # says how MindSpore makes processes
import reshard.mindspore
from layouts import Layout
from writers import strategy_protobuf

RANKS = 4
ROWS = 2


def _metadata(path):
    content = path.read_bytes()
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    return header.get("__metadata__")


def _saved(ms, folder, **options):
    """The metadata of a file by each way to save, and the bytes of one that has none. For a file
    without parameters reshard states a CRC, too, and MindSpore does not."""
    parameter = mindspore.Parameter(np.arange(6, dtype=np.float32), name="w")
    found = {}
    for name, saved, crc_check in (("plain", {"w": parameter}, False),
                                   ("crc", {"w": parameter}, True), ("empty", {}, False)):
        path = folder / f"{name}.safetensors"
        ms.save_checkpoint(saved, str(path), format="safetensors", crc_check=crc_check, **options)
        found[name] = _metadata(path)
    ms.save_checkpoint({"w": parameter}, str(folder / "w.ckpt"), **options)
    return found, (folder / "w.ckpt").read_bytes()


def _lay_out(folder, choice):
    """Files of 4 ranks as MindSpore saves them, and the strategies of 4 ranks and of 2."""
    for name, ranks in (("src", RANKS), ("dst", RANKS // 2)):
        layouts = {"w": Layout((ranks, 1), (1, -1))}
        (folder / f"{name}.ckpt").write_bytes(
            strategy_protobuf([("MatMul-op0", 0, ((ranks, 1),))], layouts, {}))
    whole = np.arange(RANKS * ROWS * 8, dtype=np.float32).reshape(RANKS * ROWS, 8)
    for rank in range(RANKS):
        path = folder / "src" / f"rank_{rank}" / f"net_{rank}-1_1.safetensors"
        path.parent.mkdir(parents=True)
        parameter = mindspore.Parameter(whole[ROWS * rank:ROWS * (rank + 1)], name="w")
        mindspore.save_checkpoint({"w": parameter}, str(path), format="safetensors",
                                  remove_redundancy=choice)


def _converted(ms, folder, out, choice):
    """The metadata of all safetensors files that conversions of the folder's ranks write."""
    src, dst, source = (str(folder / name) for name in ("src.ckpt", "dst.ckpt", "src"))
    place = {name: str(out / name) for name in
             ("ranks", "whole", "unified", "cut", "joined", "ckpt", "back")}
    ms.transform_checkpoints(source, place["ranks"], "p", src, dst, output_format="safetensors")
    ms.transform_checkpoints(source, place["whole"], "p", src, None, output_format="safetensors")
    ms.unified_safetensors(source, src, place["unified"],
                           merge_with_redundancy=choice is not True)
    for name, strategy in (("cut", dst), ("joined", None)):
        ms.load_distributed_checkpoint(
            None, predict_strategy=strategy, format="safetensors",
            unified_safetensors_dir=place["unified"], dst_safetensors_dir=place[name])
    ms.safetensors_to_ckpt(source, place["ckpt"])
    ms.ckpt_to_safetensors(place["ckpt"], place["back"])
    return {str(path.relative_to(out)): _metadata(path) for path in out.rglob("*.safetensors")}


def check_redundancy(check):
    for choice in (None, True, False):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            sides = {"theirs": mindspore, "ours": reshard.mindspore}
            for side in sides:
                (folder / side).mkdir()
            saved = [_saved(ms, folder / side, remove_redundancy=choice)
                     for side, ms in sides.items()]
            check(f"saved with remove_redundancy={choice}",
                  [] if saved[0] == saved[1] else [f"{found}" for found, _ in saved])
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            _lay_out(folder, choice)
            theirs, ours = (_converted(ms, folder, folder / side, choice)
                            for side, ms in sides.items())
            wrong = [f"{path}: {theirs.get(path)} by MindSpore, {ours.get(path)}"
                     for path in sorted(theirs.keys() | ours.keys())
                     if path not in theirs or path not in ours or theirs[path] != ours[path]]
            check(f"converted with remove_redundancy={choice}", wrong)
