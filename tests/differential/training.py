"""Random checkpoints as training leaves them: names, layouts and optimizer
states of real models, on random meshes.

`Training` knows the full tensors, so it knows what each target rank has to
hold. Nothing here knows files, MindSpore or reshard.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np

from cases import DTYPES, Case, Side, row
from layouts import Layout, box, random_layout, shard, with_opt_shards

# What each optimizer of MindSpore keeps of NAME, and its scalars.
OPTIMIZERS = {
    "none": ((), ()),
    "nn.AdamWeightDecay": (("adam_m.", "adam_v."), ()),
    "nn.Adam": (("moment1.", "moment2."), ("beta1_power", "beta2_power")),
    "nn.Adam, amsgrad": (("moment1.", "moment2.", "vhat."), ("beta1_power",)),
    "nn.Momentum": (("moments.",), ("momentum",)),
    "nn.SGD": (("accum.", "stat."), ("momentum",)),
    "nn.Lamb": (("lamb_m.", "lamb_v."), ()),
    "nn.Adagrad": (("accum.",), ()),
    "nn.Adadelta": (("accum.", "accum_update."), ()),
    "nn.FTRL": (("moments.", "linear."), ()),
    "nn.RMSProp": (("mean_grad.", "mean_square.", "moment."), ()),
    "nn.Rprop": (("prev.", "step_size."), ()),
    "nn.ASGD": (("ax_.",), ()),
    "mint.AdamW": (("exp_avg.", "exp_avg_sq."), ("state_step",)),
    "mint.AdamW, amsgrad": (("exp_avg.", "exp_avg_sq.", "max_exp_avg_sq."),
                            ()),
    "mint.SGD": (("momentum_buf.",), ()),
    "experimental.Adamax": (("exp_avg.", "exp_inf."), ()),
}
MESHES = (1, 2, 2, 2, 4, 4, 4, 4, 8, 8, 3, 6)


@dataclass
class Parameter:
    """kind: what becomes of its values on ranks that hold the same box.

    "same": replicas are equal; "differs": it is in a strategy, and each rank
    has values of its own; "everywhere": it is in no strategy, and all ranks
    have the same; "own": it is in no strategy, and each rank has its own.
    role: how it is cut; states: an optimizer keeps some of it.
    """

    name: str
    shape: tuple
    role: str
    dtype: str
    stages: tuple
    kind: str = "same"
    states: bool = False
    of: str = ""
    in_source: bool = True
    in_target: bool = True


@dataclass
class Training(Case):
    """A case with its parameters.

    alternatives: by name, full tensors of which each element that is
    converted has to be one, where replicas differ.
    """

    parameters: list = field(default_factory=list)
    alternatives: dict = field(default_factory=dict)
    optimizer: str = "none"

    def find(self, name):
        return next(p for p in self.parameters if p.name == name)

    @property
    def source_devices(self):
        return self.source.devices if self.source else 1

    @property
    def source_ranks(self):
        return self.source.ranks if self.source else 1

    def expected(self, rank):
        """Returns (dtype, arrays) by name of all that target rank `rank` gets:
        each element has to be that of one of the arrays."""
        stage, local = divmod(rank, self.target.devices) if self.target else (
            0, 0)
        at_source = self.source.names() if self.source else None
        at_target = self.target.names() if self.target else None
        here = set(self.target.stages[stage]) if self.target else set()
        wanted = at_source
        if self.source and self.target:
            wanted = at_source - (at_target - here)
        stages = [number for number, layouts in
                  enumerate(self.source.stages if self.source else [{}])
                  if not self.source or wanted & layouts.keys()]
        out = {}
        for number in stages:
            held = {row[0]: row[1] for rank in self.ranks_of(number)
                    for row in self.files[rank]}
            for name, dtype in held.items():
                if name in out:
                    continue
                from_source = not self.source or name in wanted
                to_target = not self.target or name in here
                if from_source and to_target:
                    out[name] = dtype, self._cuts(name, stage, local)
                elif not (self._is_elsewhere(name, at_source, from_source)
                          and self._is_elsewhere(name, at_target, to_target)):
                    out[name] = dtype, [self._copied(number, local, name)]
        return out

    def elements(self, name, array):
        """Returns how many elements a parameter has: of what is copied as it
        stands, those of the shard."""
        sides = [side for side in (self.source, self.target) if side]
        if all(name in side.names() for side in sides):
            return self.full[name].size
        return array.size

    @staticmethod
    def _is_elsewhere(name, names, is_here):
        return names is None or name in names and not is_here

    def _cuts(self, name, stage, local):
        tensors = self.alternatives.get(name, [self.full.get(name)])
        if not self.target:
            return tensors
        layout = self.target.stages[stage][name]
        return [shard(tensor, layout, local) for tensor in tensors]

    def ranks_of(self, stage):
        first = self.source.first_stage if self.source else 0
        devices = self.source_devices
        return range((first + stage) * devices,
                     (first + stage + 1) * devices)

    def _copied(self, stage, local, name):
        """The values of rank `local` modulo the source's devices, or, where
        its file lacks them, of one that ought to have the same."""
        ranks = list(self.ranks_of(stage))
        first = local % len(ranks)
        layout = (self.source.stages[stage].get(name) if self.source
                  else None)
        same = [rank for place, rank in enumerate(ranks)
                if not layout or box(layout, place) == box(layout, first)]
        for rank in [ranks[first], *same]:
            for found, dtype, dims, content in self.files[rank]:
                if found == name:
                    return array_of(dtype, dims, content)
        raise AssertionError(name)


# Values.

def array_of(dtype, dims, content):
    dims = [] if dims == [0] and content else dims
    return np.frombuffer(content, DTYPES[dtype]).reshape(dims)


def to_bfloat16(values):
    """Returns the bits of float32 values, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_float(values, dtype):
    if dtype == "BFloat16":
        return to_bfloat16(values)
    return np.asarray(values).astype(DTYPES[dtype])


def values_of(rng, dtype, shape, scale=0.02, middle=0.0):
    generator = np.random.default_rng(rng.getrandbits(64))
    if dtype.startswith(("Int", "UInt")):
        return generator.integers(0, 100, shape).astype(DTYPES[dtype])
    return of_float(generator.normal(middle, scale, shape).astype(np.float32),
                    dtype)


def _values(rng, parameter):
    name, dtype, shape = parameter.name, parameter.dtype, parameter.shape
    if "sq." in name or name.startswith(("adam_v.", "moment2.", "mean_square.",
                                         "vhat.", "lamb_v.")):
        return of_float(np.square(values_of(rng, "Float32", shape, 1e-4)),
                        dtype)
    if parameter.role in ("norm", "variance"):
        return values_of(rng, dtype, shape, rng.choice((0, 0.1)), 1.0)
    if parameter.role in ("bias",) and rng.random() < 0.4:
        return np.zeros(shape, DTYPES[dtype])
    if parameter.of and rng.random() < 0.1:  # no step was made yet
        return np.zeros(shape, DTYPES[dtype])
    return values_of(rng, dtype, shape, 1e-3 if parameter.of else 0.02)


# Models.

def _llama(rng, sizes, layer):
    hidden, ffn, _ = sizes
    prefix = f"model.layers.{layer}."
    kv = rng.choice((hidden, hidden))
    return [(prefix + "attention.wq.weight", (hidden, hidden), "column"),
            (prefix + "attention.wk.weight", (kv, hidden), "column"),
            (prefix + "attention.wo.weight", (hidden, hidden), "row"),
            (prefix + "feed_forward.w1.weight", (ffn, hidden), "column"),
            (prefix + "feed_forward.w2.weight", (hidden, ffn), "row"),
            (prefix + "attention_norm.weight", (hidden,), "norm")]


def _gpt(rng, sizes, layer):
    hidden, ffn, _ = sizes
    prefix = f"backbone.blocks.{layer}."
    return [(prefix + "attention.projection.weight", (hidden, hidden), "row"),
            (prefix + "attention.dense1.weight", (hidden, hidden), "column"),
            (prefix + "attention.dense1.bias", (hidden,), "bias of column"),
            (prefix + "output.mapping.weight", (ffn, hidden), "column"),
            (prefix + "output.mapping.bias", (ffn,), "bias of column"),
            (prefix + "layernorm1.gamma", (hidden,), "norm"),
            (prefix + "layernorm1.beta", (hidden,), "bias")]


def _resnet(rng, sizes, layer):
    hidden, _, _ = sizes
    prefix = f"layer{layer + 1}.0."
    out = [(prefix + "conv1.weight", (hidden, 4, 3, 3), "column"),
           (prefix + "conv2.weight", (hidden, hidden, 1, 1), "column")]
    for norm in ("bn1d.", "bn2d."):
        out += [(prefix + norm + "gamma", (hidden,), "norm"),
                (prefix + norm + "beta", (hidden,), "bias"),
                (prefix + norm + "moving_mean", (hidden,), "average"),
                (prefix + norm + "moving_variance", (hidden,), "variance")]
    return out


def _moe(rng, sizes, layer):
    hidden, ffn, _ = sizes
    prefix = f"model.layers.{layer}."
    return [(prefix + "attention.wqkv.weight", (hidden, hidden), "column"),
            (prefix + "mlp.experts.w1", (8, hidden, hidden), "expert"),
            (prefix + "mlp.experts.w2", (8, ffn, 8), "expert"),
            (prefix + "mlp.router.dense.weight", (8, hidden), "whole"),
            (prefix + "ffn_norm.weight", (hidden,), "norm")]


MODELS = {"llama": _llama, "gpt": _gpt, "resnet": _resnet, "moe": _moe}


def _model(rng, sizes, source_stages, stages):
    """Returns the weights, each in the source stages that hold it; there is a
    layer for each of `stages`."""
    style = rng.choice(list(MODELS))
    hidden, _, vocabulary = sizes
    layers = stages * rng.choice((1, 1, 1, 2, 3))
    if rng.random() < 0.08:
        layers = max(layers, 11)
    last = source_stages - 1
    tied = source_stages > 1 and rng.random() < 0.4
    weights = [("model.tok_embeddings.embedding_weight", (vocabulary, hidden),
                "column", (0, last) if tied else (0,))]
    for layer in range(layers):
        stage = layer * source_stages // layers
        weights += [(*entry, (stage,))
                    for entry in MODELS[style](rng, sizes, layer)]
    weights.append(("model.norm_out.weight", (hidden,), "norm", (last,)))
    if not tied:
        weights.append(("lm_head.weight", (vocabulary, hidden), "column",
                        (last,)))
    dtype = rng.choice(("Float32", "BFloat16", "Float16", "Float32"))
    norm = rng.choice((dtype, "Float32"))
    out = []
    for name, shape, role, stages in weights:
        average = role in ("average", "variance")
        out.append(Parameter(
            name, shape, role, norm if len(shape) == 1 else dtype, stages,
            "differs" if average and rng.random() < 0.9 else "same",
            states=not average))
    return out


def _states(parameters, optimizer):
    states, _ = OPTIMIZERS[optimizer]
    return [Parameter(prefix + p.name, p.shape, p.role, "Float32", p.stages,
                      of=p.name)
            for prefix in states for p in parameters if p.states]


def _copies(parameters, prefix, kind, in_target):
    return [Parameter(prefix + p.name, p.shape, p.role, p.dtype, p.stages,
                      kind, of=p.name, in_target=in_target,
                      in_source=kind in ("same", "differs"))
            for p in parameters if p.states]


def _beside(rng, sizes, stages, optimizer):
    """Returns what no strategy has."""
    hidden = sizes[0]
    out = [("global_step", rng.choice(((), (1,))), "Int32", "everywhere"),
           ("learning_rate", (), "Float32", "everywhere")]
    out += [("epoch_num", (), "Int64", "everywhere"),
            ("step_num", (), "Int64", "everywhere"),
            ("scale_sense", (), "Float32", "everywhere"),
            ("current_iterator_step", (), "Int32", "everywhere"),
            ("rope.freqs_cis", (hidden,), "Float32", "everywhere"),
            ("relative_bias.table", (7, hidden), "Float32", "everywhere"),
            ("causal_mask", (8, 8), "UInt8", "everywhere"),
            ("rng_state", (16,), "UInt8", "own"),
            ("tokens_per_expert", (8,), "Float32", "own")]
    out = rng.sample(out, rng.randrange(len(out)))
    if rng.random() < 0.1:  # a frozen part that the strategy does not mention
        out += [(f"vision.blocks.{i}.weight", (hidden, 8), "Float32",
                 "everywhere") for i in range(rng.randrange(1, 14))]
    out += [(name, rng.choice(((), (1,))), "Float32", "everywhere")
            for name in OPTIMIZERS[optimizer][1]]
    return [Parameter(name, shape, "beside", dtype, stages, kind,
                      in_source=False, in_target=False)
            for name, shape, dtype, kind in out]


# Layouts.

def _mesh(rng, devices):
    """Returns the device matrix, and which axis from the right is tensor
    parallel."""
    parts = rng.choice([n for n in range(1, devices + 1) if devices % n == 0])
    matrix = [devices // parts, parts]
    if rng.random() < 0.2:
        matrix.insert(1, 1)
    return tuple(matrix), 0


def _cut(role, shape, axis):
    """Returns the tensor map of a role."""
    whole = [-1] * len(shape)
    place = {"column": 0, "bias of column": 0, "expert": 0,
             "row": 1}.get(role)
    if place is not None:
        whole[place] = axis
    return tuple(whole)


def _fits(layout, shape):
    return all(size % cut == 0 for size, cut in zip(shape, layout.cuts()))


def _layout(rng, parameter, mesh, strange, optimizer_shards, flat_only):
    matrix, axis = mesh
    shape = parameter.shape
    if strange and rng.random() < 0.5:
        for _ in range(4):
            layout = random_layout(rng, math.prod(matrix), len(shape),
                                   flat_only)
            if _fits(layout, shape):
                return layout
    layout = Layout(matrix, _cut(parameter.role, shape, axis))
    if not _fits(layout, shape):
        layout = Layout(matrix, (-1,) * len(shape))
    if optimizer_shards and parameter.states:
        cut = with_opt_shards(rng, layout)
        if _fits(cut, shape):
            return cut
    return layout


def _choose(rng, training, side, at_source):
    """Gives a side the layouts of the parameters that it has."""
    mesh = _mesh(rng, side.devices)
    strange, shards = rng.random() < 0.3, rng.random() < 0.4
    count = len(side.stages)
    chosen = {}
    for parameter in training.parameters:
        if not (parameter.in_source if at_source else parameter.in_target):
            continue
        stages = parameter.stages
        if not at_source:
            # As many layers a stage as the other side has, or all others.
            sources = len(training.source.stages) if training.source else 1
            stages = sorted({stage * count // sources if count <= sources
                             else _spread(parameter, stage, count, sources)
                             for stage in stages})
        name = parameter.name
        base = (parameter.of or name)
        if parameter.role in ("average", "variance"):
            layout = Layout(mesh[0], (-1,) * len(parameter.shape))
        elif base in chosen:
            layout = chosen[base]
        else:
            layout = _layout(rng, parameter, mesh, strange, shards,
                             side.form == "json")
            chosen[name] = layout
        for stage in stages:
            side.stages[stage][name] = layout


def _spread(parameter, stage, count, sources):
    """Which of more target stages gets a parameter: by its layer's number."""
    number = re.search(r"\d+", parameter.of or parameter.name)
    more = count // sources
    return stage * more + (int(number[0]) if number else 0) % more


# Files.

def fill(rng, training):
    stages = len(training.source.stages) if training.source else 1
    for stage in range(stages):
        ranks = list(training.ranks_of(stage))
        for rank in ranks:
            training.files[rank] = []
        for parameter in training.parameters:
            if stage in parameter.stages:
                _fill_one(rng, training, parameter, stage, ranks)


def _fill_one(rng, training, parameter, stage, ranks):
    name, dtype = parameter.name, parameter.dtype
    if name not in training.full:
        training.full[name] = _values(rng, parameter)
    full = training.full[name]
    layout = (training.source.stages[stage].get(name)
              if training.source else None)
    if parameter.kind == "differs" and len(ranks) > 1:
        boxes = {}
        tensors = [_values(rng, parameter) for _ in ranks]
        training.alternatives.setdefault(name, []).extend(tensors)
    for local, rank in enumerate(ranks):
        tensor = full
        if parameter.kind == "own" and len(ranks) > 1:
            tensor = _values(rng, parameter)
        elif parameter.kind == "differs" and len(ranks) > 1:
            tensor = tensors[local]
        if layout:
            tensor = shard(tensor, layout, local)
        training.files[rank].append(row(name, dtype, tensor, rng))


PIPELINES = ((1, 1), (1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 4),
             (4, 2), (4, 1), (2, 1), (1, 4))


def _side(rng, devices, stages):
    merged = stages > 1 or rng.random() < 0.1
    return Side(devices, [{} for _ in range(stages)],
                rng.choice(("ckpt", "ckpt", "json")), merged)


def random_training(rng, kind=None, devices=None):
    """Returns a training run and where it goes.

    kind: "both", "to full" or "from full", which strategies there are;
    devices: of each source stage.
    """
    kind = kind or rng.choice(("both", "both", "both", "to full", "from full"))
    source_stages, target_stages = rng.choice(PIPELINES)
    devices = devices or rng.choice(MESHES)
    others = rng.choice(MESHES)
    if source_stages * devices > 16:
        source_stages = 1
    if target_stages * others > 16:
        target_stages = 1
    source = target = None
    if kind != "from full":
        source = _side(rng, devices, source_stages)
    else:
        source_stages = 1
    if kind != "to full":
        target = _side(rng, others, target_stages)
    optimizer = rng.choice(list(OPTIMIZERS))
    training = Training("training", source, target, optimizer=optimizer)
    unit = math.lcm(devices if source else 1, others if target else 1, 4)
    sizes = (unit * rng.choice((1, 2)), unit * rng.choice((2, 3)),
             unit * rng.choice((2, 3, 4)))
    weights = _model(rng, sizes, source_stages,
                     math.lcm(source_stages, target_stages if target else 1))
    everywhere = tuple(range(source_stages))
    parameters = weights + _states(weights, optimizer)
    _vary(rng, parameters, weights, training)
    beside = _beside(rng, sizes, everywhere, optimizer)
    training.parameters = parameters + beside
    if rng.random() < 0.3:
        rng.shuffle(training.parameters)
    if source:
        _choose(rng, training, source, True)
    if target:
        _choose(rng, training, target, False)
    _only_in_strategies(rng, training)
    fill(rng, training)
    training.crc = rng.random() < 0.15
    if rng.random() < 0.1:
        training.value_limit = rng.choice((64, 1000))
    if rng.random() < 0.3:
        training.shapes = {p.name: p.shape for p in training.parameters}
    return training


def _vary(rng, parameters, weights, training):
    """Adds copies and gradients; leaves states out of the target."""
    if rng.random() < 0.25:
        kind = rng.choice(("differs", "differs", "differs", "own"))
        parameters += _copies(weights, "accu_grads.", kind,
                              kind == "differs" and rng.random() < 0.7)
    if rng.random() < 0.2:
        prefix = rng.choice(("ema.", "ref_model.", "target_net."))
        parameters += _copies(weights, prefix,
                              rng.choice(("same", "same", "everywhere")),
                              rng.random() < 0.6)
        for p in parameters:
            if p.name.startswith(prefix) and p.kind == "everywhere":
                p.in_target = False
    if rng.random() < 0.4:  # the target infers
        for p in parameters:
            if p.of:
                p.in_target = False


def _only_in_strategies(rng, training):
    """Now and then strategies have what no file has: the states, where only
    the weights were saved."""
    if rng.random() < 0.12:
        prefixes = OPTIMIZERS[training.optimizer][0]
        training.parameters = [
            p for p in training.parameters
            if not (prefixes and p.name.startswith(prefixes))]
