"""The package as a whole: stub and module, signatures, codes and classes, what is left at the end."""

import ast
import copy
import dataclasses
import inspect
import pathlib
import pickle
import re
import subprocess
import sys
import types

import pytest
import reshard
from reshard import _reshard

ROOT = pathlib.Path(__file__).parents[2]


def stated(body, owner=""):
    """The names and arguments of a stub's functions, with those of its classes."""
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name != "StatusError":
            found[node.name] = None
            found |= stated(node.body, node.name + ".")
        elif isinstance(node, ast.FunctionDef):
            found[owner + node.name] = [a.arg for a in node.args.args if a.arg != "self"]
    return found


def present(space, owner=""):
    found = {}
    for name, value in vars(space).items():
        is_own = name == "__init__" and value.__doc__.startswith(name)  # others cannot be made
        if (name.startswith("__") and not is_own) or name == "StatusError" or isinstance(value, types.ModuleType):
            continue
        if isinstance(value, type):
            found[name] = None
            found |= present(value, name + ".")
            continue
        # As "read(self, tensor: int, begin: collections.abc.Sequence[int]) -> None".
        said = getattr(space, name).__doc__.splitlines()[0]
        found[owner + name] = re.findall(r"[(,] ?(\w+): ", said)
    return found


def test_the_stub_says_what_the_module_has():
    stub = ast.parse((ROOT / "python" / "reshard" / "_reshard.pyi").read_text(encoding="utf-8"))
    assert stated(stub.body) == present(_reshard)


def is_exception(value):
    return isinstance(value, type) and issubclass(value, Exception)


def test_public_calls_have_signatures_that_name_their_arguments():
    calls = [getattr(reshard, name) for name in [*reshard.__all__, "open"]]
    calls = [call for call in calls if callable(call) and not is_exception(call)]
    assert len(calls) > 50
    for call in calls:
        names = list(inspect.signature(call).parameters)
        assert not [name for name in names if re.fullmatch(r"arg\d+", name)], call
        assert call.__module__ == "reshard", call


def test_results_have_the_fields_that_the_library_says():
    subprocess.run([sys.executable, "-B", ROOT / "tools/dev/report_fields.py"], check=True)


def test_results_are_frozen_dataclasses():
    total = reshard.Total(1, bytes=2)
    totals = reshard.Totals(1, 1, 2, {}, by_prefix={"weights": total})
    assert dataclasses.asdict(totals) == totals.to_dict() and totals.by_prefix["weights"] is total
    assert [field.name for field in dataclasses.fields(reshard.MapStretch)] == ["offset", "length", "part", "type", "shape"]
    assert list(inspect.signature(reshard.ReplicaPair).parameters) == ["rank", "reference", "other_type", "offset"]
    assert dataclasses.replace(total, bytes=3) == reshard.Total(parameters=1, bytes=3) != total
    assert hash(total) == hash(reshard.Total(1, 2)) and repr(total) == "Total(parameters=1, bytes=2)"
    assert pickle.loads(pickle.dumps(totals)) == copy.deepcopy(totals) == totals
    assert reshard.Total(1, 2) != reshard.Stretch(1, 2)
    pair = reshard.ReplicaPair(1, 0, offset=3)
    assert pair.other_type is None and pair.to_dict() == {"rank": 1, "reference": 0, "offset": 3}
    match total:
        case reshard.Total(1, size):
            assert size == 2
    for change in (lambda: setattr(total, "bytes", 3), lambda: delattr(total, "bytes")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="'bytes'"):
            change()
    for values, named in [((1,), {}), ((1, 2, 3), {}), ((1,), {"parameters": 1}), ((1, 2), {"more": 3})]:
        with pytest.raises(TypeError, match=r"Total\(\)"):
            reshard.Total(*values, **named)


def test_what_takes_long_to_import_is_imported_when_it_is_needed():
    late = {"concurrent.futures", "dataclasses", "difflib", "glob", "hashlib", "html", "inspect", "json", "ml_dtypes"}
    code = f"import sys, numpy\nbefore = set(sys.modules)\nimport reshard\nprint({late} & (set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def codes_of_the_library():
    source = (ROOT / "src" / "base" / "status.cc").read_text(encoding="utf-8")
    return [name for name in re.findall(r'case StatusCode::k\w+:\s*return "([^"]+)"', source) if name != "ok"]


def test_each_code_of_the_library_has_a_class():
    assert set(codes_of_the_library()) == set(reshard._errors._BY_CODE)


@pytest.mark.parametrize("code", codes_of_the_library())
def test_a_code_is_raised_as_its_class_with_the_words_of_the_call(code):
    def refuse():
        raise _reshard.StatusError(code, "pass `source.strategy` or `force`", 0, "source.strategy")

    with pytest.raises(reshard.Error) as found:
        reshard._errors.call({"source.strategy": "strategy"}, refuse)
    for error in (found.value, pickle.loads(pickle.dumps(found.value))):
        assert type(error) is reshard._errors._BY_CODE[code] and error.code == code
        assert str(error) == "pass strategy or force" and error.option == "strategy"
        assert type(error).__module__ == "reshard" and hasattr(reshard, type(error).__name__)


def test_nothing_of_the_module_is_left_when_python_ends(full):
    # nanobind says on stderr what has not been freed by then.
    code = """if True:
        import sys, numpy as np, reshard
        kept = reshard.open(sys.argv[1])
        arrays = kept.read()
        view = kept["lm_head.weight"].mapped[:3]
        kept["lm_head.weight"].__dlpack__()
        reshard.inspect(sys.argv[1], values=True)
        try:
            reshard.open("nowhere")
        except reshard.Error as error:
            held = error
    """
    done = subprocess.run([sys.executable, "-c", code, full], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
