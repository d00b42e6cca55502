"""Cases: what a conversion starts from, and random ones.

A case holds everything in memory: layouts of both sides, and the rows of each
source file. Nothing here knows MindSpore or reshard.
"""

import math
import random
from dataclasses import dataclass, field

import numpy as np

from layouts import Layout, random_layout, shard

# BFloat16 has no numpy type: its bit patterns stand in for it.
DTYPES = {
    "Float16": np.float16, "Float32": np.float32, "Float64": np.float64,
    "BFloat16": np.uint16, "Bool": np.bool_,
    "Int8": np.int8, "Int16": np.int16, "Int32": np.int32, "Int64": np.int64,
    "UInt8": np.uint8, "UInt16": np.uint16, "UInt32": np.uint32,
    "UInt64": np.uint64,
}
# Left out when MindSpore asks whether the source is one stage of the target.
OPTIMIZER_PREFIXES = ("accu_grads", "adam_v", "adam_m")
# How many devices a stage has, and how many stages either side; some oftener.
DEVICE_COUNTS = (1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 8, 12, 16)
PIPELINES = ((1, 2), (2, 1), (2, 2), (2, 2), (1, 3), (3, 1), (2, 3), (3, 2),
             (1, 4), (4, 1), (2, 4), (4, 2))


@dataclass
class Side:
    """The strategy of one side.

    stages: Layout by parameter name, one dictionary a stage; form: "ckpt"
    (protobuf) or "json"; merged: there is a file for each stage, and they have
    to be merged; copies: how many equal files a stage has, as several ranks
    write them; first_stage: the number of a stage that is converted alone.
    """

    devices: int
    stages: list
    form: str = "ckpt"
    merged: bool = False
    copies: int = 1
    first_stage: int = 0

    @property
    def ranks(self):
        return self.devices * len(self.stages)

    def names(self):
        return {name for stage in self.stages for name in stage}


@dataclass
class Case:
    """A conversion. A side that is None stands for full tensors on one rank.

    files: rows of (name, dtype, dims, content) by source rank; full: the full
    tensors by name, of the stage whose values count; shapes: full shapes that
    the strategy files mention; ranks: the target ranks to convert one by one,
    or None for all at once; load: MindSpore loads every output.
    """

    name: str
    source: Side = None
    target: Side = None
    files: dict = field(default_factory=dict)
    full: dict = field(default_factory=dict)
    shapes: dict = field(default_factory=dict)
    ranks: list = None
    # The source files: where contents are cut, a trailer, an older step beside.
    value_limit: int = 512 * 1024 * 1024
    crc: bool = False
    older_files: bool = False
    load: bool = False

    @property
    def target_ranks(self):
        return self.target.ranks if self.target else 1

    @property
    def one_stage_alone(self):
        """MindSpore's rule: then outputs are named after the source's stage."""
        if not self.source or not self.target:
            return False
        if len(self.source.stages) > 1 or len(self.target.stages) > 1:
            return False
        source, target = ({name for name in side.names()
                           if not name.startswith(OPTIMIZER_PREFIXES)}
                          for side in (self.source, self.target))
        return source < target

    def expected_shard(self, rank, name):
        """Returns what a target rank has to hold of a converted parameter, as
        numpy cuts it, or None if the parameter is not converted there."""
        stage, local = 0, 0
        if self.target:
            stage, local = divmod(rank, self.target.devices)
            if name not in self.target.stages[stage]:
                return None
        if name not in self.full:
            return None
        if self.source and name not in self.source.names():
            return None
        if not self.target:
            return self.full[name]
        return shard(self.full[name], self.target.stages[stage][name], local)


def random_content(rng, dtype, shape):
    """Returns random bits, less those that MindSpore does not keep."""
    numpy_type = np.dtype(DTYPES[dtype])
    generator = np.random.default_rng(rng.getrandbits(64))
    size = math.prod(shape) * numpy_type.itemsize
    bits = np.frombuffer(generator.bytes(size), np.uint8)
    if dtype == "Bool":
        bits = bits & 1
    out = bits.view(numpy_type).reshape(shape)
    if dtype == "BFloat16":
        # It goes through Float32 there, and one NaN pattern comes back.
        nan = (out & 0x7FFF) > 0x7F80
        out = np.where(nan, np.uint16(0x7FC0), out)
    return out


def row(name, dtype, tensor, rng=None):
    """Returns a row of a checkpoint; some scalars get dims [0], which means
    the same as none."""
    assert tensor.dtype == DTYPES[dtype], name
    dims = list(tensor.shape)
    if not dims and rng and rng.random() < 0.3:
        dims = [0]
    return (name, dtype, dims, np.ascontiguousarray(tensor).tobytes())


@dataclass
class _Parameter:
    """where: in which strategies it is: both, source, target, neither, or
    nowhere (in both, but in no file)."""

    name: str
    dtype: str
    dimensions: int
    where: str
    source_stages: list
    target_stages: list


def _names(rng, count):
    """Returns names of weights, some with their optimizer states; one that is
    not ASCII, one whose length takes two bytes."""
    bases = ("weight", "bias", "gamma", "qkv.weight", "expert_3.w1",
             "\u00e9t\u00e9", "w" * 130)
    states = ("", "adam_m.", "adam_v.", "moments.", "accu_grads.")
    names = []
    while len(names) < count:
        base = f"layer{len(names)}.{rng.choice(bases)}"
        kept = rng.choice((1, 1, 1, 2, 3, 5))
        names += [state + base for state in states[:kept]]
    return names[:count]


def _some_stages(rng, count, first, shared):
    """Returns one stage, now and then (if it may be shared) several."""
    stages = {first}
    while shared and count > 1 and rng.random() < 0.15:
        stages.add(rng.randrange(count))
    return sorted(stages)


def _parameters(rng, source_stages, target_stages, where):
    """Returns parameters such that each stage of either side has one that is
    converted, as MindSpore demands."""
    converted = max(source_stages, target_stages)
    count = converted + rng.randrange(9)
    out = []
    for i, name in enumerate(_names(rng, count)):
        # MindSpore errs when three or more target stages share a parameter.
        out.append(_Parameter(
            name, rng.choice(list(DTYPES)),
            rng.choice((0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4)),
            "both" if i < converted else rng.choice(where),
            _some_stages(rng, source_stages, i % source_stages, True),
            _some_stages(rng, target_stages, i % target_stages,
                         target_stages == 2)))
    rng.shuffle(out)
    return out


def _choose_layouts(rng, parameter, source, target):
    """Adds the parameter's layouts to the sides; returns its full shape."""
    cuts = [1] * parameter.dimensions
    sides = ((source, parameter.source_stages, ("both", "source", "nowhere")),
             (target, parameter.target_stages, ("both", "target", "nowhere")))
    for side, stages, places in sides:
        if not side or parameter.where not in places:
            continue
        for stage in stages:
            layout = random_layout(rng, side.devices, parameter.dimensions,
                                   side.form == "json")
            side.stages[stage][parameter.name] = layout
            cuts = [math.lcm(a, b) for a, b in zip(cuts, layout.cuts())]
    factors = (1, 2, 3, 5) if math.prod(cuts) < 4096 else (1,)
    return tuple(cut * rng.choice(factors) for cut in cuts)


def _fill_files(rng, case, parameters, shapes, source_stages, devices):
    """Cuts full tensors into the rows of the source files; what no source
    layout cuts gets other values on each rank."""
    first = case.source.first_stage if case.source else 0
    for stage in range(source_stages):
        present = [parameter for parameter in parameters
                   if stage in parameter.source_stages
                   and parameter.where != "nowhere"]
        rng.shuffle(present)
        rows = {rank: [] for rank in range(devices)}
        for parameter in present:
            name, dtype = parameter.name, parameter.dtype
            tensor = random_content(rng, dtype, shapes[name])
            layout = (case.source.stages[stage].get(name)
                      if case.source else Layout((1,), (-1,) * tensor.ndim))
            if layout:
                # The lowest stage that has a parameter gives its values.
                case.full.setdefault(name, tensor)
            for rank in rows:
                part = (shard(tensor, layout, rank) if layout
                        else random_content(rng, dtype, shapes[name]))
                rows[rank].append(row(name, dtype, part, rng))
        for rank in rows:
            case.files[(first + stage) * devices + rank] = rows[rank]


def _devices(rng, source_stages, target_stages):
    """Returns device counts of one stage that MindSpore converts between: one
    divides the other. Pipelines have at most 32 ranks."""
    while True:
        source, target = rng.choice(DEVICE_COUNTS), rng.choice(DEVICE_COUNTS)
        if source % target and target % source:
            continue
        if max(source * source_stages, target * target_stages) <= 32:
            return source, target


def _sides(rng):
    """Returns the kind of a case and its two sides, without parameters."""
    kind = rng.choices(
        ("both", "to full", "from full", "alone", "pipelines"),
        (30, 10, 10, 10, 40))[0]
    stages = (1, 1)
    if kind == "pipelines":
        stages = rng.choice(PIPELINES)
    elif kind in ("to full", "from full"):
        stages = (rng.choice((1, 1, 2, 3)),) * 2
    sides = []
    for devices, count in zip(_devices(rng, *stages), stages):
        merged = count > 1 or kind != "alone" and rng.random() < 0.1
        sides.append(Side(devices, [{} for _ in range(count)],
                          rng.choice(("ckpt", "ckpt", "json")), merged,
                          rng.choice((1, 1, 1, 2))))
    if kind == "alone":
        sides[0].first_stage = rng.randrange(4)
    source = sides[0] if kind != "from full" else None
    target = sides[1] if kind != "to full" else None
    return kind, source, target


def random_case(seed, name):
    """Returns the case of a seed, any string."""
    rng = random.Random(seed)
    kind, source, target = _sides(rng)
    case = Case(name, source, target)
    source_stages = len(source.stages) if source else 1
    target_stages = len(target.stages) if target else 1
    where = ["both"] * 6 + ["source", "target", "neither", "neither", "nowhere"]
    if kind == "alone":
        where = ["both", "both", "target", "neither"]
    parameters = _parameters(rng, source_stages, target_stages, where)
    if kind == "alone":
        parameters.append(_Parameter("head.weight", "Float32", 2, "target",
                                     [0], [0]))
    shapes = {parameter.name: _choose_layouts(rng, parameter, source, target)
              for parameter in parameters}
    _fill_files(rng, case, parameters, shapes, source_stages,
                source.devices if source else 1)
    case.shapes = shapes if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        case.value_limit = rng.choice((7, 64, 1000))
    case.crc = rng.random() < 0.2
    case.older_files = rng.random() < 0.2
    if not case.one_stage_alone and rng.random() < 0.25:
        case.ranks = rng.sample(range(case.target_ranks),
                                min(2, case.target_ranks))
    return case
