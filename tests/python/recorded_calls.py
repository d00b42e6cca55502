"""What MindSpore 2.10.0 did in 282 calls (data/mindspore_calls.jsonl), and how a call of the drop-in
is compared with it: the same return value and files, an exception of the same class or a subclass.
What differs on purpose stands in DIFFERENT. Needs no pytest: tests/differential runs it with
MindSpore."""

import builtins
import glob
import inspect
import io
import json
import os
import pathlib
import re
import shutil
import types

import ml_dtypes
import numpy as np

import reshard
import reshard.mindspore
import reshard.mindspore.parallel
import reshard.mindspore.train
from reshard.mindspore._parameter import Parameter, Tensor

DATA = pathlib.Path(__file__).parent / "data"
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "data"
ROWS = [json.loads(line) for line in (DATA / "mindspore_calls.jsonl").read_text().splitlines()]
SIGNATURES = json.loads((DATA / "mindspore_signatures.json").read_text())
SPACES = {
    "mindspore": reshard.mindspore,
    "mindspore.parallel": reshard.mindspore.parallel,
    "mindspore.train": reshard.mindspore.train,
}

# Where the drop-in is to do something else: an exception, or what the call returns.
DIFFERENT = {
    # Paths are accepted.
    "T0b": None,
    "L6": 2,
    "K3b": 1,
    "R1c": [3, 2, 1, 0],
    # The target is the source.
    "T0g": ValueError,
    # A prefix that leads into another folder is refused before the work.
    "T6b": ValueError,
    # A folder of stage files is a strategy; this one has none.
    "T12": ValueError,
    # Weights as a strategy.
    "T13": ValueError,
    "S7": ValueError,
    # An output format that there is not.
    "T16": ValueError,
    # Elements are int.
    "R0b": ["int", "int", "int", "int"],
    # The folder is made.
    "B0b": None,
    # Protobuf's own class is nothing to depend on.
    "I2": ValueError,
    # In the order of the names of files, not in the folder's.
    "L0": {"a.weight": ("Float32", (16, 32)), "b.weight": ("Float32", (16, 32))},
    # Ours are light.
    "S0": None,
    # The dtype has to be the same, and bfloat16 stays.
    "G8": ValueError,
    "G11": "Parameter (name=w, shape=(4, 3), dtype=BFloat16, requires_grad=True)",
    # Complex64 loads; a CRC that is wrong does not.
    "K0c": None,
    "K10": ValueError,
    # What leaves nothing of a safetensors file is said, too.
    "K19": ValueError,
    # Arrays and Paths are taken; files have the usual mode.
    "V0": (None, 46, "0o100644"),
    "V1": None,
    "V3b": None,
    # mindspore.train's function returns what mindspore's does.
    "D0b": True,
    # AttributeError tells nobody what is wrong.
    "K16c": TypeError,
    "U3b": TypeError,
    "X8": TypeError,
    # The work is shared in another way.
    "U8": ValueError,
}


def dense(inputs, outputs):
    """As nn.Dense: a net of two parameters, which the drop-in takes by get_parameters()."""
    parameters = [
        Parameter(Tensor(np.zeros((outputs, inputs), np.float32)), "weight"),
        Parameter(Tensor(np.zeros(outputs, np.float32)), "bias"),
    ]
    return types.SimpleNamespace(
        get_parameters=lambda: parameters, trainable_params=lambda: parameters
    )


def garbage(path="g.ckpt"):
    pathlib.Path(path).write_bytes(b"\x07garbage garbage garbage\xff\xfe")


def stages(*names):
    os.mkdir("sd")
    source = GOLDEN / "convert" / "case_013" / "src_stages"
    for number, name in enumerate(names):
        shutil.copy(sorted(source.iterdir())[number], f"sd/{name}")


def flipped():
    content = bytearray(pathlib.Path("a/files/crc.ckpt").read_bytes())
    content[20] ^= 1
    pathlib.Path("b.ckpt").write_bytes(content)


def truncated(path, to):
    content = pathlib.Path(path).read_bytes()
    pathlib.Path(to).unlink(missing_ok=True)
    pathlib.Path(to).write_bytes(content[: len(content) // 2])


def odd_names():
    for rank in (1, 2, 3):
        os.rename(f"c/src/rank_{rank}", f"c/src/part_{rank}")


def empty(path):
    pathlib.Path(path).touch()


GARBAGE_ROWS = ("T10", "R9", "S5", "K6")
EMPTY_ROWS = ("T11", "S4", "K7")
SETUP = {
    "T3": lambda: os.mkdir("e"),
    "T14": lambda: shutil.rmtree("c/src/rank_1"),
    "T15": lambda: truncated("c/src/rank_1/net-1_100.ckpt", "c/src/rank_1/net-1_100.ckpt"),
    "T19": lambda: shutil.copy("a/files/crc.safetensors", "c/src/rank_0/x-1_100.safetensors"),
    "T20": lambda: shutil.copy("a/files/encrypted_AES-GCM.ckpt", "c/src/rank_3/net-1_100.ckpt"),
    "T26": odd_names,
    "B0c": lambda: empty("o.ckpt"),
    "B10": lambda: os.mkdir("d.ckpt"),
    "M0": lambda: stages("s0.ckpt", "s1.ckpt"),
    "M0b": lambda: shutil.copytree("pp", "sd"),
    "M3": lambda: (stages("s0.ckpt"), pathlib.Path("sd/s1.json").write_text("{}")),
    "M4": lambda: (os.mkdir("sd"), garbage("sd/g.ckpt")),
    "M6": lambda: stages("s0.ckpt", "s1.ckpt"),
    "M7": lambda: stages("s0.ckpt", "s1.ckpt"),
    "L4": lambda: os.mkdir("e"),
    "L5": lambda: garbage("a/segmented/z.ckpt"),
    "L8": lambda: (os.mkdir("e"), shutil.copy("a/files/crc.safetensors", "e")),
    "S8": lambda: shutil.copy("c/src_strategy.ckpt", "strat"),
    "K8": lambda: truncated("a/files/plain.ckpt", "g.ckpt"),
    "K10": flipped,
    "K10b": flipped,
    "I2": lambda: garbage("g.pb"),
    "I3": lambda: pathlib.Path("g.pb").write_bytes(b"\x12\x00"),
    "I4": lambda: empty("g.pb"),
    "V5b": lambda: os.mkdir("d.ckpt"),
    "U6": lambda: shutil.rmtree("a/safetensors/src/rank_1"),
    **{row: garbage for row in GARBAGE_ROWS},
    **{row: lambda: empty("g.ckpt") for row in EMPTY_ROWS},
}


def called(row):
    return re.search(r"\b(?:ms|tr|par)\.(?!bfloat16)(\w+)", row["call"])[1]


def is_there(name):
    return any(hasattr(space, name) for space in SPACES.values())


CALLED = [row for row in ROWS if is_there(called(row))]


# What reshard writes beside its outputs.
RECORDS = {"manifest.json", "checksums.xxh128", "origin.jsonl", "part_records"}


def without_records(pattern, **keywords):
    found = glob.glob(pattern, **keywords)
    return [path for path in found if RECORDS.isdisjoint(path.split("/"))]


def comparable(text):
    return re.sub(r"np\.int64\((\d+)\)", r"\1", text).replace(f"{os.getcwd()}/", "")


def lay_out(folder):
    """Makes what the calls start from; they run in this folder."""
    shutil.copytree(GOLDEN / "apis", folder / "a")
    shutil.copytree(GOLDEN / "convert" / "case_006", folder / "c")
    shutil.copytree(GOLDEN / "convert" / "case_013" / "src_stages", folder / "pp")


def light_words():
    """What names in a call stand for where there is no MindSpore."""
    return {
        "ms": types.SimpleNamespace(**vars(reshard.mindspore), bfloat16=ml_dtypes.bfloat16),
        "nn": types.SimpleNamespace(Dense=dense),
        "Parameter": Parameter,
        "Tensor": Tensor,
    }


def wrong_with(row, words):
    """Makes the call of a row; returns what is wrong with it, or None."""
    name = row["id"].split()[0]
    if name in SETUP:
        SETUP[name]()
    words = {
        "par": reshard.mindspore.parallel,
        "tr": reshard.mindspore.train,
        "np": np,
        "glob": types.SimpleNamespace(glob=without_records),
        "os": os,
        "io": io,
        **words,
    }
    expected = DIFFERENT.get(name, row.get("raises") and getattr(builtins, row["raises"], None))
    if isinstance(expected, type):
        try:
            found = eval(row["call"], words)
        except expected:
            left = glob.glob("*.tmp")
            return f"leaves {left}" if left else None
        return f"returned {found!r} in place of {expected.__name__}"
    found = eval(row["call"], words)
    if name in DIFFERENT:
        if expected is not None and found != expected:
            return f"returned {found!r} in place of {expected!r}"
    elif "os.listdir" in row["call"]:
        # In any order.
        listed = [sorted(re.findall("'[^']*'", text)) for text in (repr(found), row["returns"])]
        return None if listed[0] == listed[1] else f"lists {listed[0]}"
    else:
        # Of long ones the beginning is recorded; behind an encrypted file's mode all is random.
        recorded = row["returns"][:16] if name == "V7" else row["returns"]
        if not comparable(repr(found)).startswith(comparable(recorded)):
            return f"returned {found!r} in place of {recorded}"
    missing = [written for written in row.get("files", ()) if not os.path.isfile(written)]
    return f"did not write {missing}" if missing else None


def wrong_signatures(name, signature):
    """Returns the namespaces in which the function of this name does not take what `signature` of
    MindSpore's says."""
    wrong = []
    for space in SIGNATURES[name]["in"]:
        parameters = inspect.signature(getattr(SPACES[space], name)).parameters.values()
        ours = [p.replace(annotation=p.empty) for p in parameters if p.kind is not p.KEYWORD_ONLY]
        if str(inspect.Signature(ours)) != signature:
            wrong.append(f"{space}.{name}{inspect.Signature(ours)}")
    return wrong
