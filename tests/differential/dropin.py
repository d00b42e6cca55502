#!/usr/bin/env python3
"""Compares reshard.mindspore with the installed MindSpore, in its process.

Twice, each in a process: MindSpore is imported first, and reshard is. Golden
cases through the functions of reshard.mindspore, byte for byte; the recorded
calls, and MindSpore's signatures; what files state of redundancy
(dropin_metadata.py); bindings that patch() replaces and unpatch()
puts back, all of them; random conversions by the functions of both, and what
both load of them (dropin_pairs.py).
"""

import argparse
import collections
import importlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

ORDERS = ("mindspore", "reshard")
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "data"
MAX_DRAWS = 20


def import_both(first):
    os.environ["GLOG_v"] = "4"
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in (first, *ORDERS):
        importlib.import_module("reshard.mindspore" if name == "reshard" else name)


# Golden cases.


def _strategies(folder):
    paths = [folder / f"{side}_strategy.ckpt" for side in ("src", "dst")]
    return [path if path.exists() else None for path in paths]


def _differing(expected, found, pattern):
    """Returns what is wrong with the files of a folder, if anything."""
    files = sorted(expected.glob(pattern))
    if not files:
        return [f"{expected}: no {pattern}"]
    return [f"{path} differs from MindSpore's" for path in files
            if (found / path.relative_to(expected)).read_bytes() != path.read_bytes()]


def golden_conversions(ms, out):
    for folder in sorted((GOLDEN / "convert").iterdir()):
        case = json.loads((folder / "case.json").read_text())
        strategies = [case[f"{side}_strategy"] and folder / case[f"{side}_strategy"]
                      for side in ("src", "dst")]
        ms.transform_checkpoints(folder / "src", out / folder.name, case["prefix"], *strategies)
        yield folder.name, _differing(folder / "expected", out / folder.name, "rank_*/*.ckpt")


def golden_ranks(ms, out):
    folder = GOLDEN / "apis" / "by_rank"
    listed = json.loads((folder / "case.json").read_text())["mindspore_rank_lists"]
    for rank, of_mindspore in listed.items():
        ranks = ms.rank_list_for_transform(int(rank), *_strategies(folder))
        files = {source: folder / f"origin_rank{source}.ckpt" for source in ranks}
        made = out / f"expected_rank{rank}.ckpt"
        ms.transform_checkpoint_by_rank(int(rank), files, made, *_strategies(folder))
        wrong = _differing(folder, out, made.name)
        if not set(ranks) <= set(of_mindspore):
            wrong.append(f"the list is {ranks}, MindSpore's {of_mindspore}")
        yield f"by_rank {rank}", wrong


def golden_stage(ms, out):
    """One stage of a pipeline."""
    folder = GOLDEN / "apis" / "by_stage"
    ms.transform_checkpoints(folder / "src", out, "out", folder / "src_strategy_1.ckpt",
                             folder / "dst_strategy.ckpt")
    yield "by_stage", _differing(folder / "expected", out, "rank_*/*.ckpt")


def golden_segments(ms, _):
    mindspore = sys.modules["mindspore"]
    folder = GOLDEN / "apis" / "segmented"
    theirs, ours = (
        {name: (str(p.dtype), p.shape, bytes(p.data.get_bytes()))
         for name, p in load(str(folder)).items()}
        for load in (mindspore.load_segmented_checkpoints, ms.load_segmented_checkpoints))
    yield "segmented", [] if theirs == ours else ["other Parameters"]


def golden_slices(ms, _):
    import numpy as np
    mindspore = sys.modules["mindspore"]
    folder = GOLDEN / "apis" / "merge_sliced"
    for case in json.loads((folder / "cases.json").read_text()):
        strategy = case["strategy"] and ms.build_searched_strategy(folder / case["strategy"])
        name = next(iter(strategy)) if strategy else "w"
        arrays = [np.load(folder / f"{case['name']}_slice{rank}.npy")
                  for rank in range(case["slices"])]
        slices = [mindspore.Parameter(mindspore.Tensor(array), name=name) for array in arrays]
        expected = np.load(folder / f"{case['name']}_expected.npy")
        wrong = []
        # MindSpore's function takes the layouts that reshard's returns.
        for merge in (ms.merge_sliced_parameter, mindspore.merge_sliced_parameter):
            merged = merge(slices, strategy)
            if not isinstance(merged, mindspore.Parameter) or merged.name != name:
                wrong.append(f"{type(merged)} {merged.name}")
            if merged.asnumpy().tobytes() != expected.tobytes():
                wrong.append(f"{merge.__module__} merges to other values")
        yield f"slices {case['name']}", wrong


def golden_safetensors(ms, out):
    folder = GOLDEN / "apis" / "safetensors"
    prefix = next((folder / "expected_ckpt").glob("rank_0/*")).name[:-len("0.ckpt")]
    for output in ("ckpt", "safetensors"):
        ms.transform_checkpoints(folder / "src", out / output, prefix, *_strategies(folder),
                                 output_format=output)
        yield f"safetensors to {output}", _differing(folder / f"expected_{output}", out / output,
                                                     f"rank_*/*.{output}")
    ms.unified_safetensors(folder / "src", folder / "src_strategy.ckpt", out / "unified")
    yield "unified", _differing(folder / "expected_unified", out / "unified", "*.safetensors")


def _distribute(ms, folder, case, out):
    renamed = case.get("name_map")
    ms.load_distributed_checkpoint(
        None, format="safetensors", unified_safetensors_dir=folder / case["src"],
        predict_strategy=folder / case["dst_strategy"], dst_safetensors_dir=out,
        output_format=case["format"],
        name_map=renamed and json.loads((folder / renamed).read_text()))


def _recode(ms, folder, case, out):
    call = ms.ckpt_to_safetensors if case["format"] == "safetensors" else ms.safetensors_to_ckpt
    renamed = case.get("rename")
    call(folder / case["src"], out, renamed and json.loads((folder / renamed).read_text()),
         case.get("files"))


def golden_formats(ms, out):
    """Cases with safetensors that MindSpore's functions have a call for: not a bare file in place
    of ranks, and not .ckpt to safetensors in one pass."""
    for op in ("transform", "distributed", "recode"):
        for folder in sorted((GOLDEN / "safetensors" / op).iterdir()):
            case = json.loads((folder / "case.json").read_text())
            source, made = folder / case["src"], out / op / folder.name
            if case["compare"] != "bytes":
                continue
            if op == "transform":
                one_format = any(source.glob(f"rank_*/*.{case['format']}"))
                if source.is_file() or case["format"] == "safetensors" and not one_format:
                    continue
                strategies = [case.get(f"{side}_strategy") for side in ("src", "dst")]
                ms.transform_checkpoints(source, made, case["prefix"],
                                         *(name and folder / name for name in strategies),
                                         output_format=case["format"])
            else:
                (_distribute if op == "distributed" else _recode)(ms, folder, case, made)
            yield f"{op} {folder.name}", _differing(folder / "expected", made,
                                                    f"**/*.{case['format']}")


def golden_files(ms, out):
    """What MindSpore saved: all dtypes, a CRC, each mode of encryption."""
    mindspore = sys.modules["mindspore"]
    folder = GOLDEN / "apis" / "files"
    key = json.loads((folder / "case.json").read_text())["key_ascii"].encode()
    plain = bytes(mindspore.load_checkpoint(str(folder / "plain.ckpt"))["w"].data.get_bytes())
    for mode in ("AES-GCM", "AES-CBC", "SM4-CBC"):
        found = ms.load_checkpoint(folder / f"encrypted_{mode}.ckpt", dec_key=key, dec_mode=mode)
        yield mode, [] if bytes(found["w"].data.get_bytes()) == plain else ["other bytes"]
    for name in ("dtypes.ckpt", "crc.ckpt"):
        found = ms.load_checkpoint(folder / name)
        # Complex64 MindSpore does not load.
        ms.save_checkpoint(found, out / name, crc_check=name == "crc.ckpt")
        yield name, _differing(folder, out, name)


def check_golden(check):
    import reshard.mindspore as ms
    for golden in (golden_conversions, golden_ranks, golden_stage, golden_segments, golden_slices,
                   golden_safetensors, golden_formats, golden_files):
        with tempfile.TemporaryDirectory() as out:
            for name, wrong in golden(ms, pathlib.Path(out)):
                check(f"golden {name}", wrong)


# Recorded calls and signatures, with the installed MindSpore's Parameters and nets.


def check_recorded_calls(check):
    import inspect
    import warnings
    import mindspore
    import recorded_calls
    import reshard.mindspore
    words = {
        "ms": types.SimpleNamespace(**vars(reshard.mindspore), bfloat16=mindspore.bfloat16),
        "nn": mindspore.nn, "Parameter": mindspore.Parameter, "Tensor": mindspore.Tensor}
    here, mask = os.getcwd(), os.umask(0o022)
    warnings.simplefilter("ignore")
    try:
        for row in recorded_calls.CALLED:
            with tempfile.TemporaryDirectory() as folder:
                recorded_calls.lay_out(pathlib.Path(folder))
                os.chdir(folder)
                try:
                    wrong = recorded_calls.wrong_with(row, words)
                except Exception as error:  # Of another class than MindSpore's.
                    wrong = f"{type(error).__name__}: {error}"
                finally:
                    os.chdir(here)
            check(f"call {row['id']}", [wrong] if wrong else [])
    finally:
        os.umask(mask)
        warnings.resetwarnings()
    for name, recorded in recorded_calls.SIGNATURES.items():
        if not recorded_calls.is_there(name):
            continue
        for space in recorded["in"]:
            theirs = getattr(importlib.import_module(space), name)
            check(f"signature {name}", recorded_calls.wrong_signatures(
                name, str(inspect.signature(theirs))))


# patch() and unpatch().


def _bindings(functions):
    """Returns (module, name) of all places of these functions."""
    wanted = {id(function) for function in functions}
    return {(module.__name__, name)
            for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)
            for name, value in list(vars(module).items()) if id(value) in wanted}


def check_patch(check):
    import mindspore
    import reshard.mindspore as ours
    from reshard.mindspore import _patch
    spaces = (mindspore, mindspore.parallel, mindspore.train)
    for names in ((), _patch.BY_NAME, ("transform_checkpoints",)):
        functions = [getattr(space, name) for space in spaces for name in names or _patch.DEFAULT
                     if hasattr(space, name)]
        before = _bindings(functions)
        with ours.patch(*names) as count:
            left = _bindings(functions)
            again = ours.patch(*names)
        wrong = []
        if count != len(before) or count < len(names or _patch.DEFAULT):
            wrong.append(f"patch() replaced {count} of {len(before)} bindings")
        # reshard keeps MindSpore's functions to put them back, in no module's names.
        if left:
            wrong.append(f"left: {sorted(left)}")
        if again != 0:
            wrong.append(f"a second patch() replaced {again}")
        if _bindings(functions) != before:
            wrong.append(f"unpatch() left {sorted(before ^ _bindings(functions))}")
        print(f"patch({', '.join(names)}): {count} bindings", flush=True)
        check(f"patch {' '.join(names)}", wrong)


# Memory.


def check_memory(check):
    """Parameters have the array that was read into for their memory."""
    import ml_dtypes
    import mindspore
    import numpy as np
    from reshard import _dtypes
    from reshard.mindspore import _load, _parameter, _save
    for name in (*_dtypes._NUMPY, "BFloat16"):
        array = np.ones((3, 5), _dtypes.to_numpy(name, 1))
        made = _parameter.make(mindspore, array, name, "w")
        wrong = []
        if made._data_ptr() != array.ctypes.data:
            wrong.append("a copy")
        if str(made.dtype) != name or bytes(made.data.get_bytes()) != array.tobytes():
            wrong.append(f"{made.dtype}, or other bytes")
        check(f"memory of {name}", wrong)
    large = np.arange(6 << 20).reshape(3, -1)
    addresses = {}
    make = _parameter.make

    def noted(framework, array, dtype_name, name, *more):
        addresses[name] = array.ctypes.data
        return make(framework, array, dtype_name, name, *more)

    _parameter.make = noted
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "w.ckpt"
            arrays = {name: large.astype(dtype) for name, dtype in
                      (("w", np.float32), ("half", ml_dtypes.bfloat16), ("small", np.int8))}
            arrays["small"] = arrays["small"][:, :9]
            _save.save_checkpoint(arrays, file)
            found = _load.load_checkpoint(file)
    finally:
        _parameter.make = make
    check("memory of load_checkpoint", [
        name for name, parameter in found.items()
        if parameter._data_ptr() != addresses[name]
        or bytes(parameter.data.get_bytes()) != arrays[name].tobytes()])


# Metadata.


def check_metadata(check):
    import dropin_metadata
    dropin_metadata.check_redundancy(check)


# Random pairs.


def check_pairs(check, seed, numbers):
    import cases
    import dropin_pairs
    import mindspore_side
    refusals, dtypes, tensors = collections.Counter(), collections.Counter(), 0
    for number in numbers:
        name = f"pair-{number}"
        for attempt in range(MAX_DRAWS):
            case = cases.random_case(f"{seed}/{name}/{attempt}", name)
            with tempfile.TemporaryDirectory() as folder:
                pair = dropin_pairs.PairComparison(case, folder)
                try:
                    failures = pair.run()
                except mindspore_side.Refused as refused:
                    refusals[str(refused)] += 1
                    continue
            check(name, failures)
            tensors += pair.tensors
            dtypes.update(row[1] for row in case.files[min(case.files)])
            break
        else:
            check(name, [f"MindSpore refused {MAX_DRAWS} draws"])
    print(f"{len(numbers)} random pairs, {tensors} tensors as MindSpore has them, of "
          f"{dict(dtypes)}; {refusals.total()} draws that MindSpore refused were drawn again")
    for text, count in refusals.most_common(5):
        print(f"  {count} x {text}")


def run_order(order, seed, cases):
    """Runs the checks in this process; returns the exit code."""
    import_both(order)
    counts = collections.Counter()

    def check(name, wrong):
        counts["failed" if wrong else "passed"] += 1
        if wrong:
            print(f"FAILED {name}", *wrong[:8], sep="\n  ", flush=True)

    check_memory(check)
    check_golden(check)
    check_metadata(check)
    check_recorded_calls(check)
    check_pairs(check, seed, range(ORDERS.index(order), cases, len(ORDERS)))
    check_patch(check)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, type=pathlib.Path,
                        help="the folder that has the package reshard")
    parser.add_argument("--cases", type=int, default=200,
                        help="random conversions, half of them in each process")
    parser.add_argument("--seed", help="a seed printed by an earlier run")
    parser.add_argument("--first", choices=ORDERS, help="only with this import first")
    arguments = parser.parse_args()
    seed = arguments.seed or secrets.token_hex(4)
    if arguments.first:
        sys.path.insert(0, str(arguments.package.resolve()))
        sys.exit(run_order(arguments.first, seed, arguments.cases))
    running = {order: subprocess.Popen(
        [sys.executable, __file__, "--package", arguments.package, "--cases",
         str(arguments.cases), "--seed", seed, "--first", order],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for order in ORDERS}
    failed = 0
    for order, process in running.items():
        said, _ = process.communicate()
        print(f"== {order} imported first, exit {process.returncode}\n{said}", flush=True)
        failed += process.returncode != 0
    print(f"seed {seed}: {len(ORDERS) - failed} import orders passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
