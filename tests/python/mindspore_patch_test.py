"""patch() and `python -m reshard.mindspore`, with a small package in MindSpore's place and without
one, each in a process of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

# As MindSpore has them: one function in two namespaces, two of one name, other modules that hold
# them.
FAKE = {
    "__init__.py": """
from mindspore.own import rank_list_for_transform, load_checkpoint, unified_safetensors
from mindspore import parallel, train
from mindspore.own import build_searched_strategy
""",
    "own.py": """
def rank_list_for_transform(rank_id, src_strategy_file=None, dst_strategy_file=None):
    return "MindSpore's"
def load_checkpoint(name):
    return "MindSpore's"
def unified_safetensors(*arguments, **keywords):
    return "MindSpore's"
def build_searched_strategy(name):
    return "MindSpore's"
""",
    "parallel.py": "from mindspore.own import *\n",
    "train.py": "def build_searched_strategy(name):\n    return 'the other of MindSpore'\n",
}


@pytest.fixture
def fake(tmp_path):
    (tmp_path / "mindspore").mkdir()
    for name, content in FAKE.items():
        (tmp_path / "mindspore" / name).write_text(content)
    return tmp_path


def run(folder, *arguments, expected=0):
    path = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-B", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == expected, done.stderr
    return done


def test_patch_replaces_what_modules_hold_and_unpatch_puts_it_back(fake):
    script = fake / "script.py"
    script.write_text("""
import warnings
import mindspore, reshard
import reshard.mindspore as ours
from mindspore import rank_list_for_transform as held

count = ours.patch()
# rank_list: mindspore, own, parallel, here. unified: three. build: own, two, and train's.
assert count == 11, count
assert held(0) == [0] and mindspore.parallel.rank_list_for_transform(0) == [0]
assert mindspore.load_checkpoint("x") == "MindSpore's"
for space in (mindspore, mindspore.train):
    assert space.build_searched_strategy(None) is None

# What reshard does not support, MindSpore does, and once that is said.
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        found = mindspore.unified_safetensors(".", __file__, "out", split_dst_file=(1, 2))
        assert found == "MindSpore's"
assert [str(each.message) for each in told] and len(told) == 1
assert "MindSpore's own function" in str(told[0].message)
try:
    ours.unified_safetensors(".", __file__, "out", split_dst_file=(1, 2))
except reshard.UnsupportedError:
    pass
else:
    raise AssertionError

assert ours.patch() == 0
assert ours.patch("load_checkpoint") == 3
assert ours.unpatch() == 14
assert held(0) == "MindSpore's"
assert mindspore.train.build_searched_strategy(None) == "the other of MindSpore"

with ours.patch("rank_list_for_transform") as count:
    assert count == 4 and held(0) == [0]
assert held(0) == "MindSpore's"

# What an inner one replaced goes back at its end, and nothing else.
with ours.patch("rank_list_for_transform"):
    with ours.patch("rank_list_for_transform", "load_checkpoint") as count:
        assert count == 3 and mindspore.load_checkpoint is not held
    assert mindspore.load_checkpoint("x") == "MindSpore's" and held(0) == [0]
    with ours.patch("load_checkpoint"):
        ours.unpatch()
    assert held(0) == "MindSpore's"
    ours.patch("rank_list_for_transform")
    assert held(0) == [0]
assert held(0) == "MindSpore's" and ours.unpatch() == 0
try:
    ours.patch("load")
except ValueError as error:
    assert "'load'" in str(error)
else:
    raise AssertionError
print("all")
""")
    assert run(fake, script).stdout == "all\n"


def test_a_script_runs_with_mindspore(fake):
    (fake / "beside.py").write_text("VALUE = 7\n")
    script = fake / "script.py"
    script.write_text("""
import sys
import mindspore as ms
import beside
print(ms.rank_list_for_transform(0), ms.load_checkpoint("x"), sys.argv[1:], beside.VALUE, __name__)
""")
    done = run(fake, "-m", "reshard.mindspore", script, "a", "b")
    assert done.stdout == "[0] MindSpore's ['a', 'b'] 7 __main__\n"


def test_a_script_runs_without_mindspore(samples, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, train
from mindspore.parallel import convert_checkpoints

source = "{samples / 'ckpt_8'}"
convert_checkpoints(source, "out", "p", source + "/strategy")
parameters = train.load_checkpoint("out/rank_0/p0.ckpt")
head = parameters["lm_head.weight"]
head.set_data(Tensor(np.split(head.data.asnumpy(), 2, axis=0)[1]), True)
ms.save_checkpoint(parameters, "half.ckpt")
print(ms.load_checkpoint("half.ckpt")["lm_head.weight"].shape, isinstance(head, Parameter))
ms.nn
""")
    done = run(tmp_path, "-m", "reshard.mindspore", script, expected=1)
    assert done.stdout == "(128, 64) True\n"
    last = done.stderr.splitlines()[-1]
    assert last == (
        "AttributeError: mindspore is not installed; reshard stands in for its checkpoint functions"
        " only, not for 'nn'"
    )


def test_a_script_has_to_be_named(tmp_path):
    done = run(tmp_path, "-m", "reshard.mindspore", expected=2)
    assert "usage: " in done.stderr


def test_without_mindspore_there_is_nothing_to_patch(tmp_path):
    done = run(tmp_path, "-c", "import reshard.mindspore as ms; ms.patch()", expected=1)
    assert "mindspore is not installed" in done.stderr
