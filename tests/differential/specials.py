"""The named cases, which every run has beside the random ones."""

import random

import numpy as np

from cases import DTYPES, Case, Side, random_content, row
from layouts import Layout, shard


def _build(name, source, target, stages, extra=lambda rank: []):
    """Cuts full tensors into a case.

    stages: for each source stage a list of (name, dtype, tensor); extra: rows
    that a rank has besides.
    """
    case = Case(name, source, target, load=True)
    for number, tensors in enumerate(stages):
        for local in range(source.devices):
            rank = number * source.devices + local
            rows = [row(key, dtype, shard(tensor, source.stages[number][key],
                                          local))
                    for key, dtype, tensor in tensors]
            case.files[rank] = rows + extra(rank)
        case.full.update({key: tensor for key, _, tensor in tensors})
    return case


def _cut_columns(name, dtype, shape, source_parts, target):
    tensor = random_content(random.Random(name), dtype, shape)
    source = Side(source_parts, [{"weight": Layout((source_parts,), (-1, 0))}])
    return _build(name, source, target, [[("weight", dtype, tensor)]])


def above_512_mib():
    """A target of 540 MiB, which MindSpore cuts in the middle of a row, from
    four column shards."""
    case = _cut_columns("above_512_mib", "Float32", (8999, 15732), 4, None)
    # MindSpore needs several times its size to load it.
    case.load = False
    return case


def wide_columns():
    """Runs of 3000 bytes and tensors beyond one window of the sources."""
    target = Side(8, [{"weight": Layout((2, 4), (0, 1))}])
    return _cut_columns("wide_columns", "Int8", (8000, 6000), 2, target)


def bfloat16():
    """Every bit pattern that MindSpore keeps, cut differently."""
    bits = np.arange(65536, dtype=np.uint16)
    bits[(bits & 0x7FFF) > 0x7F80] = 0x7FC0
    tensors = [("rows", "BFloat16", bits.reshape(256, 256)),
               ("opt", "BFloat16", bits[::-1].copy()),
               ("copied", "BFloat16", bits[:100].copy())]
    source = Side(4, [{"rows": Layout((2, 2), (1, 0)),
                       "opt": Layout((4,), (-1,), 1, 4),
                       "copied": Layout((4,), (-1,))}])
    target = Side(8, [{"rows": Layout((2, 4), ((0, 1), (-1,))),
                       "opt": Layout((2, 4), (1,), 1, -1)}])
    return _build("bfloat16", source, target, [tensors])


def every_dtype():
    """Each dtype as a matrix, a vector of one element and a scalar."""
    rng = random.Random("every_dtype")
    tensors, source, target = [], {}, {}
    for dtype in DTYPES:
        for shape in ((12, 8), (1,), ()):
            name = f"{dtype}.{len(shape)}"
            tensors.append((name, dtype, random_content(rng, dtype, shape)))
            whole = (-1,) * len(shape)
            source[name] = Layout((4,), (0, -1) if len(shape) == 2 else whole)
            target[name] = Layout((2,), (-1, 0) if len(shape) == 2 else whole)
    return _build("every_dtype", Side(4, [source]), Side(2, [target]),
                  [tensors])


def ranks_differ():
    """Parameters in no strategy whose values differ from rank to rank, fewer
    ranks to more."""
    tensor = random_content(random.Random("ranks_differ"), "Float32", (24, 16))

    def extra(rank):
        return [row("learning_rate", "Float32", np.float32(rank / 8)),
                row("global_step", "Int32", np.array([rank], np.int32)),
                row("rng_state", "UInt8", np.full(16, rank, np.uint8))]

    source = Side(4, [{"weight": Layout((4,), (0, -1))}])
    target = Side(8, [{"weight": Layout((2, 4), (-1, 0))}])
    return _build("ranks_differ", source, target,
                  [[("weight", "Float32", tensor)]], extra)


def both_pipelined():
    """Two stages of four to four of two, with a shared embedding at the source
    whose copies differ, and values that differ between ranks."""
    rng = random.Random("both_pipelined")
    stages, layouts = [], []
    for number in range(2):
        names = [f"layer{2 * number + i}.weight" for i in range(2)]
        stages.append([(name, "Float32",
                        random_content(rng, "Float32", (16, 24)))
                       for name in names])
        layouts.append({name: Layout((2, 2), (0, -1), 2, 2) for name in names})
        stages[-1].insert(number, ("embedding", "Float16",
                                   random_content(rng, "Float16", (32, 8))))
        layouts[-1]["embedding"] = Layout((2, 2), (number, -1))

    def extra(rank):
        return [row("global_step", "Int64", np.int64(rank))]

    target = [{f"layer{i}.weight": Layout((2,), (-1, 0))} for i in range(4)]
    target[0]["embedding"] = Layout((2,), (-1, -1), 1, 2)
    case = _build("both_pipelined", Side(4, layouts, merged=True),
                  Side(2, target, merged=True), stages, extra)
    case.full["embedding"] = stages[0][0][2]
    return case


MAKERS = {maker.__name__: maker for maker in (
    above_512_mib, wide_columns, bfloat16, every_dtype, ranks_differ,
    both_pipelined)}
