"""What MindSpore makes of a case. Importing this module takes seconds."""

import contextlib
import io
import math
import multiprocessing
import os
import types
from pathlib import Path

# Its log would bury the report; errors come back as exceptions.
os.environ["GLOG_v"] = "4"
# It forks, and a child that makes OpenMP threads waits forever for those that
# only its parent has.
os.environ["OMP_NUM_THREADS"] = "1"

import mindspore  # pylint: disable=wrong-import-position
from mindspore.parallel import checkpoint_transform, transform_safetensors
from mindspore.train import _utils as train_utils

# Its processes cannot be spawned: what they are given cannot be pickled.
multiprocessing.set_start_method("fork", force=True)


class Refused(Exception):
    """MindSpore raised; the message is its own, in one line."""


@contextlib.contextmanager
def _refusals():
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())[:160]
        raise Refused(f"{type(error).__name__}: {text}") from error


def _path(path):
    return str(path) if path else None


def merge(files, out):
    """Merges strategy files of one folder, in the order given.

    MindSpore takes them in the order of the directory, which no one chose.
    """
    names = [str(file) for file in files]
    listing = checkpoint_transform.glob.glob
    checkpoint_transform.glob.glob = (
        lambda pattern: [name for name in names
                         if name.endswith(Path(pattern).suffix)])
    try:
        mindspore.merge_pipeline_strategys(str(files[0].parent), str(out))
    finally:
        checkpoint_transform.glob.glob = listing


def searched(strategy):
    """Returns the layouts of a strategy file by name."""
    with _refusals():
        return mindspore.build_searched_strategy(str(strategy))


def convert(source, out, prefix, source_strategy, target_strategy):
    with _refusals():
        mindspore.transform_checkpoints(
            str(source), str(out), prefix, _path(source_strategy),
            _path(target_strategy))


def convert_safetensors(source, out, prefix, source_strategy, target_strategy,
                        output_format):
    """Converts rank folders of safetensors files."""
    with _refusals():
        mindspore.transform_checkpoints(
            str(source), str(out), prefix, _path(source_strategy),
            _path(target_strategy), output_format=output_format)


def unify(source, strategy, out, part_size, merge_with_redundancy=True):
    """Writes a unified folder of parts of about `part_size` bytes."""
    # 3 GiB is written into the code, and divided by just before it is rounded.
    scaled = types.SimpleNamespace(**vars(math))
    scaled.ceil = lambda parts: math.ceil(parts * (3 << 30) / part_size)
    transform_safetensors.math = scaled
    try:
        with _refusals():
            mindspore.unified_safetensors(
                str(source), _path(strategy), str(out),
                merge_with_redundancy=merge_with_redundancy, max_process_num=1)
    finally:
        transform_safetensors.math = math


def distribute(unified, strategy, out, output_format):
    """Cuts a unified folder for a strategy."""
    with _refusals():
        mindspore.load_distributed_checkpoint(
            None, format="safetensors", unified_safetensors_dir=str(unified),
            predict_strategy=_path(strategy), dst_safetensors_dir=str(out),
            output_format=output_format, max_process_num=1)


def recode(source, out, to):
    """Recodes a file, or the files of rank folders, to "ckpt" or "safetensors"."""
    call = (mindspore.ckpt_to_safetensors if to == "safetensors"
            else mindspore.safetensors_to_ckpt)
    # It prints a bar.
    with _refusals(), contextlib.redirect_stdout(
            io.TextIOWrapper(io.BytesIO())):
        call(str(source), str(out))


def rank_list(rank, source_strategy, target_strategy):
    """Returns the source ranks MindSpore asks for, in descending order."""
    with _refusals():
        return [int(found) for found in mindspore.rank_list_for_transform(
            rank, _path(source_strategy), _path(target_strategy))]


def convert_rank(rank, files, out, source_strategy, target_strategy):
    """Converts one target rank from a dictionary of source rank to file."""
    with _refusals():
        mindspore.transform_checkpoint_by_rank(
            rank, {key: str(file) for key, file in files.items()}, str(out),
            _path(source_strategy), _path(target_strategy))


def load(path):
    """Returns rows of (name, dtype, dims, content), as MindSpore loads them."""
    rows = []
    for name, parameter in mindspore.load_checkpoint(str(path)).items():
        rows.append((name, str(parameter.dtype), list(parameter.shape),
                     bytes(parameter.data.get_bytes())))
    return rows



def kept_without_redundancy(layouts, first_rank):
    """Returns the groups of ranks that hold the same, by name, and which names each rank keeps.

    `layouts` are those of a stage, rows of (device matrix, tensor map, opt_weight_shard_step,
    opt_weight_shard_size) by name. These are the steps of get_parameter_redundancy behind reading a
    strategy file; that function reads no layouts of scalars.
    """
    groups = {}
    with _refusals():
        train_utils._get_parameter_redundancy_without_opt_shard(
            {name: row[:2] for name, row in layouts.items()}, groups, first_rank)
        train_utils._get_strategy_opt_shard(
            groups, {name: row[2:] for name, row in layouts.items()})
        groups = {name: groups[name] for name in sorted(groups)}
        return groups, train_utils.remove_param_redundancy(groups)


def load_without_redundancy(path):
    """Returns the names in a safetensors file that says that redundancy is removed."""
    with _refusals():
        return set(mindspore.load_checkpoint(str(path), format="safetensors",
                                             remove_redundancy=True))
