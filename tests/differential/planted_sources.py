"""Faults of sources and strategies."""

import dataclasses
import json
import math

import numpy as np

import journeys
import readers
from cases import row
from planted import cut_names, held, is_single, renamed
from training import OPTIMIZERS, values_of
from writers import huggingface_folder, safetensors_bytes, unified_folder

# Names


def _evidence(training, side, rename):
    """Whether one substitution pairs at least half of the unmatched tensors,
    and some of these are cut."""
    other = {rename(name) for name in side.names()}
    files = held(training)
    unmatched = {name for name, (_, dims) in files.items()
                 if name not in other and not is_single(dims)
                 and not any(name.endswith("." + listed) for listed in other)}
    paired = {name for name in unmatched
              if name in side.names() and rename(name) not in files}
    return (len(paired) * 2 >= len(unmatched) and paired & cut_names(side)
            and len(other) == len(side.names()))


def _substituted(planted, rename_of, which):
    """Refused because `which` side has other names than the files."""
    rng = planted.rng

    def fits(training):
        side = getattr(training, which)
        if not side or side.devices * len(side.stages) == 1:
            return False
        nonlocal rename
        rename = rename_of(rng, training)
        return rename and _evidence(training, side, rename)

    rename = None
    training = planted.training(accept=fits)
    wrong = dataclasses.replace(training, **{
        which: renamed(getattr(training, which), rename)})
    store = planted.store(wrong)
    source, options = planted.written(wrong, store)
    if which == "source" and not wrong.target and (
            len(wrong.source.stages) == 1 and rng.random() < 0.4):
        planted.refused(
            "merge", *(planted.folder / "src" / store.path(rank)
                       for rank in wrong.files),
            planted.folder / f"out{store.suffix}", "--strategy", options[-1],
            *options[:-2])
        return
    planted.convert_refused(
        source, [*options, *planted.target_format(training)],
        allow=["--unmatched", "copy"])


SHORTER = {"attention": "attn", "feed_forward": "mlp", "weight": "kernel",
           "layers": "layer", "blocks": "h", "projection": "proj",
           "dense1": "q_proj", "mapping": "fc", "output": "mlp",
           "experts": "local_experts", "layer1": "stage1", "conv1": "conv_a",
           "tok_embeddings": "embed_tokens", "model": "transformer",
           "backbone": "decoder"}


def _component(rng, training):
    names = [p.name for p in training.parameters if not p.of]
    found = [part for part in SHORTER
             if any(part in name.split(".") for name in names)]
    old = rng.choice(found)
    new = SHORTER[old]
    return lambda name: ".".join(new if part == old else part
                                 for part in name.split("."))


def _prefix(rng, training):
    """Another beginning of the names: replaced, put before them, or gone; an
    optimizer's copies have theirs before it."""
    states = OPTIMIZERS[training.optimizer][0]
    old, new = rng.choice((("model.", "network."), ("backbone.", "gpt."),
                           ("", "network."), ("model.", ""),
                           ("", "_backbone.")))

    def rename(name):
        state = next((s for s in (*states, "accu_grads.", "ema.", "ref_model.",
                                  "target_net.") if name.startswith(s)), "")
        rest = name[len(state):]
        if rest.startswith(old):
            rest = new + rest[len(old):]
        return state + rest

    return rename


def component_of_source(planted):
    """A component of the source strategy's names is another."""
    _substituted(planted, _component, "source")


def component_of_target(planted):
    """A component of the target strategy's names is another."""
    _substituted(planted, _component, "target")


def prefix_of_source(planted):
    """The source strategy's names begin otherwise."""
    _substituted(planted, _prefix, "source")


def prefix_of_target(planted):
    """The target strategy's names begin otherwise."""
    _substituted(planted, _prefix, "target")


def unmatched_matrices(planted):
    """The strategies lack matrices that are cut: ten or more differ."""
    def fits(training):
        if not training.source or training.source.devices == 1:
            return False
        return len(_differing(training)) >= 10

    training = planted.training(planted.rng.choice(("both", "to full")), fits)
    differing = _differing(training)
    # Names of weights go with those of their states; a strategy also has
    # names that no file has.
    of = {p.name: p.of for p in training.parameters if p.of}
    lost = set(planted.rng.sample(
        differing, planted.rng.randrange(10, len(differing) + 1)))
    for side in (training.source, training.target):
        for stage in side.stages if side else ():
            for name in list(stage):
                base = of.get(name, name)
                if name in lost or any(of.get(other, other) == base
                                       for other in lost):
                    del stage[name]
    if any(not stage for side in (training.source, training.target) if side
           for stage in side.stages):
        return unmatched_matrices(planted)
    source, options = planted.written(training, planted.store(training))
    return planted.convert_refused(
        source, [*options, *planted.target_format(training)],
        allow=["--unmatched", "copy"])


def _differing(training):
    """Returns the matrices whose shards differ in ranks of one stage."""
    out = []
    for parameter in training.parameters:
        name = parameter.name
        if len(parameter.shape) < 2 or name.startswith("accu_grads"):
            continue
        for stage in range(len(training.source.stages)):
            contents = {row[3] for rank in training.ranks_of(stage)
                        for row in training.files[rank] if row[0] == name}
            if len(contents) > 1:
                out.append(name)
                break
    return out


# Files that state what they are


def swapped_folders(planted):
    """Two ranks lie in each other's folders; the files' names tell it."""
    training = planted.training(
        accept=lambda found: found.source and found.source_ranks > 1)
    store = planted.store(training, container=planted.rng.choice(
        ("ckpt", "safetensors")), stem=planted.rng.choice(
            ("llama_rank_{rank}-1_100", "rank{rank}-2_5", "net-rank_{rank}",
             "mindformers_rank_{rank}-12_3", "llama_rank_{rank}-1-1_100",
             "CKP_rank_{rank}_1-4_32")), where=planted.rng.choice(
                 ("rank_{rank}", "node{rank}")))
    source, options = planted.written(training, store)
    a, b = planted.rng.sample(sorted(training.files), 2)
    folders = [planted.folder / "src" / store.where.format(rank=rank)
               for rank in (a, b)]
    files = [next(folder.iterdir()) for folder in folders]
    files[0].rename(folders[1] / files[0].name)
    files[1].rename(folders[0] / files[1].name)
    planted.convert_refused(source, options,
                            one_of=[file.name for file in files])
    if planted.rng.random() < 0.3:
        given = []
        for rank in training.files:
            path = planted.folder / "src" / store.path(rank)
            if rank in (a, b):
                path = folders[rank == a] / path.name
            given += ["--source", f"{rank}={path}"]
        planted.done("convert", *given, planted.out, *options)
        planted.right(training, options)


def _shards(planted):
    """Returns a full checkpoint as numbered shards, and where it goes."""
    training = planted.training("from full")
    count = planted.rng.randrange(2, 5)
    rows = training.files[0]
    shards = [rows[number::count] for number in range(count)]
    names = [f"model-{number + 1:05}-of-{count:05}.safetensors"
             for number in range(count)]
    return training, dict(zip(names, shards))


def lone_shard(planted):
    """-KKKKK-of-NNNNN without the others."""
    training, shards = _shards(planted)
    name = planted.rng.choice(list(shards))
    source = planted.folder / "src"
    place = source / planted.rng.choice(("", "", "rank_0")) / name
    place.parent.mkdir(parents=True)
    place.write_bytes(safetensors_bytes(shards[name], {"format": "pt"}))
    if place.parent == source:
        source = planted.rng.choice((source, place))
    options = planted.rng.choice((
        ["--format", "huggingface"], ["--format", "unified"],
        journeys.strategy_arguments(planted.folder, training)))
    planted.convert_refused([source], options, one_of=[name],
                            allow=["--partial"])
    planted.done(planted.rng.choice(("inspect", "digest")), source)


def lone_segments(planted):
    """merge --segments lacks a segment of those that the names state."""
    _, shards = _shards(planted)
    lost = planted.rng.choice(list(shards))
    source = planted.folder / "src"
    source.mkdir()
    for name, rows in shards.items():
        if name != lost:
            (source / name).write_bytes(
                safetensors_bytes(rows, {"format": "pt"}))
    given = planted.rng.choice(([source], sorted(source.iterdir())))
    out = planted.folder / "all.safetensors"
    planted.refused("merge", "--segments", *given, out)
    if out.exists():
        raise planted.wrong("files at the target")
    if planted.rng.random() < 0.3:
        planted.done("merge", "--segments", *given, out, "--partial")


def dcp_shard(planted):
    """A shard of a distributed checkpoint that begins elsewhere than at 0."""
    training = planted.training("from full")
    rows = [row for row in training.files[0] if row[2] and row[2] != [0]]
    if not rows:
        rows = [("w", "Float32", [2, 3], bytes(24))]
    planted.rng.shuffle(rows)
    begins = {row[0]: {"saved_offsets": [0] * len(row[2])} for row in rows}
    for row_ in rows[:planted.rng.randrange(1, len(rows) + 1)]:
        axis = planted.rng.randrange(len(row_[2]))
        begins[row_[0]]["saved_offsets"][axis] = row_[2][axis]
    source = planted.folder / "src"
    source.mkdir()
    name = planted.rng.choice(("shard-00002-model-00001-of-00001.safetensors",
                               "model.safetensors"))
    (source / name).write_bytes(safetensors_bytes(rows, {
        "DCP_SHARDING_INFO": json.dumps(begins), "DCP_VERSION": "1.0"}))
    where = planted.rng.choice((source, source / name))
    if planted.rng.random() < 0.2:
        planted.refused("merge", "--segments", source / name,
                        planted.folder / "all.safetensors")
        return
    options = planted.rng.choice((
        ["--format", "huggingface"], ["--format", "unified"],
        journeys.strategy_arguments(planted.folder, training)))
    # A folder of shards is proved to be whole.
    is_of_shards = where == source and name.startswith("shard")
    planted.convert_refused([where], options, allow=[] if is_of_shards else ["--partial"])
    planted.done("inspect", source / name)


# What is warned about


def counters(planted):
    """Ranks that disagree in a step counter or in the learning rate."""
    rng = planted.rng
    training = planted.training(
        rng.choice(("both", "to full")),
        lambda found: found.source_ranks > 1)
    name, dtype = rng.choice((("global_step", "Int32"),
                              ("step_num", "Int64"),
                              ("learning_rate", "Float32")))
    values = (0.5, 0.25) if dtype == "Float32" else (110, 100)
    odd = set(rng.sample(sorted(training.files),
                         rng.randrange(1, training.source_ranks)))
    for rank, rows in training.files.items():
        rows = [row for row in rows if row[0] != name]
        value = np.array(values[rank in odd], dtype.lower())
        rows.append(row(name, dtype, value))
        training.files[rank] = rows
    source, options = planted.written(training, planted.store(training))
    names = [name, *values] if dtype != "Float32" else [name]
    planted.warned(rng.choice(("convert", "plan")), *source, planted.out,
                   *options, names=names)


def _whole_folder(planted):
    """Writes a folder of full tensors; returns the training run, the folder,
    and its index."""
    training = planted.training("from full")
    rows = training.files[0]
    source = planted.folder / "src"
    source.mkdir()
    if planted.rng.random() < 0.5:
        size = max(1, sum(len(row[3]) for row in rows) // 3)
        files = huggingface_folder(rows, size)
        index = "model.safetensors.index.json"
    else:
        files = unified_folder(rows, [], planted.rng.randrange(1, 4))
        index = "param_name_map.json"
    for name, data in files.items():
        (source / name).write_bytes(data)
    if not (source / index).exists():  # one shard
        names = {row[0]: "model.safetensors" for row in rows}
        (source / "model.safetensors").rename(source / "all.safetensors")
        (source / index).write_text(json.dumps(
            {"metadata": {"total_size": sum(len(row[3]) for row in rows)},
             "weight_map": dict.fromkeys(names, "all.safetensors")}))
    return training, source, source / index


def _warned_and_right(planted, training, source, names):
    options = planted.rng.choice((
        ["--format", "huggingface"], ["--format", "unified"],
        journeys.strategy_arguments(planted.folder, training)))
    if "--format" in options:
        training.target = None
    command = planted.rng.choice(("convert", "convert", "plan"))
    planted.warned(command, source, planted.out, *options, names=names)
    if command == "convert":
        if "--format" in options:
            planted.right_whole(training, options[1] == "unified")
        else:
            planted.right_ranks(training)


def unnamed_file(planted):
    """A file that no index names."""
    training, source, _ = _whole_folder(planted)
    name = planted.rng.choice(("extra.safetensors", "lora.safetensors",
                               "model-00009-of-00009.safetensors"))
    tensor = values_of(planted.rng, "Float32", (4, 4))
    (source / name).write_bytes(safetensors_bytes(
        [row("other.weight", "Float32", tensor)], {"format": "pt"}))
    _warned_and_right(planted, training, source, [name])


def wrong_total(planted):
    """An index whose total_size is not that of its tensors."""
    training, source, index = _whole_folder(planted)
    said = json.loads(index.read_text())
    said["metadata"]["total_size"] += planted.rng.choice((-4, 4, 1 << 30))
    index.write_text(json.dumps(said))
    _warned_and_right(planted, training, source, ["total_size"])


def unconfirmed(planted):
    """No matrix has a replica: a note."""
    def fits(training):
        if training.source.devices == 1:
            return False
        return all(math.prod(layout.cuts()) == training.source.devices
                   for stage in training.source.stages
                   for name, layout in stage.items()
                   if len(layout.tensor_map) > 1)

    training = planted.training("both", fits)
    source, options = planted.written(training, planted.store(training))
    planted.warned("convert", *source, planted.out, *options,
                   names=["unconfirmed", "--reference"], word="reshard: ")
    planted.right(training, options)


def inference_target(planted):
    """The target strategy lacks the optimizer's states: one warning, how many
    these are and how they are left out."""
    def fits(training):
        states = [p for p in training.parameters if p.of and p.states
                  or p.name.startswith(prefixes(training))]
        return (prefixes(training) and states
                and not any(p.in_target for p in states)
                and training.target.devices > 1
                and any(p.name in held(training) for p in states))

    def prefixes(training):
        return OPTIMIZERS[training.optimizer][0]

    training = planted.training("both", fits)
    source, options = planted.written(training, planted.store(training))
    planted.warned("convert", *source, planted.out, *options,
                   names=["--exclude"])
    planted.right(training, options)


def one_plain(planted):
    """One rank of an encrypted set is not encrypted: a warning names it."""
    training = planted.training(
        planted.rng.choice(("both", "to full")),
        lambda found: found.source_ranks > 1 and not found.alternatives)
    store = planted.store(
        training, container="ckpt", crc=False,
        mode=planted.rng.choice(("AES-GCM", "AES-CBC")),
        key=planted.rng.randbytes(16))
    source, options = planted.written(training, store)
    plain = planted.rng.choice(sorted(training.files))
    path = planted.folder / "src" / store.path(plain)
    path.write_bytes(journeys.file_bytes(
        planted.rng, dataclasses.replace(store, mode=None),
        training.files[plain], training.value_limit))
    # Every file is read then.
    planted.warned("convert", *source, planted.out, *options,
                   "--check-replicas=all", names=["encrypted", path.name])
    planted.right(training, options)


# What is no fault


def another_order(planted):
    """Files of one size whose tensors are in another order."""
    training = planted.training(
        planted.rng.choice(("both", "to full")),
        lambda found: found.source_ranks > 1 and not found.alternatives)
    store = planted.store(training, container="safetensors", crc=False,
                          shuffled=True)
    source, options = planted.written(training, store)
    options += planted.target_format(training)
    planted.done("convert", *source, planted.out, *options)
    planted.right(training, options)
    planted.done("verify", planted.out, "--against", *source, *options)


def missing_but_excluded(planted):
    """A file that the index names is gone, but what it has is left out."""
    training, source, index = _whole_folder(planted)
    said = json.loads(index.read_text())
    said["weight_map"]["mtp.fc.weight"] = planted.rng.choice(
        ("gone.safetensors", next(iter(said["weight_map"].values()))))
    index.write_text(json.dumps(said))
    target = planted.rng.choice((True, False))
    options = ["--format", "huggingface"]
    if target:
        options = journeys.strategy_arguments(planted.folder, training)
    else:
        training.target = None
    planted.refused("convert", source, planted.out, *options)
    planted.done("convert", source, planted.out, *options, "--exclude",
                 "mtp.*")
    if target:
        planted.right_ranks(training)
    else:
        planted.right_whole(training)


def metadata_of_tensors(planted):
    """Metadata under the names of tensors, as quantizers write it, is kept."""
    training = planted.training("from full")
    training.target = None
    rows = training.files[0]
    names = planted.rng.sample([row[0] for row in rows],
                               min(3, len(rows)))
    metadata = {"format": "pt", **{name: json.dumps({"_type": "Tensor"})
                                   for name in names}}
    source = planted.folder / "src"
    source.mkdir()
    (source / "model.safetensors").write_bytes(
        safetensors_bytes(rows, metadata))
    planted.done("convert", source, planted.out, "--format", "huggingface")
    planted.right_whole(training)
    _, found = readers.safetensors(
        (planted.out / "model.safetensors").read_bytes())
    if found != metadata:
        raise planted.wrong(f"metadata {found}, not {metadata}")


# Types


def _raw(entries, metadata=None):
    """A safetensors file of (name, dtype, shape, content) in order."""
    header, end = ({"__metadata__": metadata} if metadata else {}), 0
    for name, dtype, shape, content in entries:
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [end, end + len(content)]}
        end += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((len(text).to_bytes(8, "little"), text,
                     *(entry[3] for entry in entries)))


def small_floats(planted):
    """4- and 6-bit tensors: shapes and counts are of elements."""
    rng = planted.rng
    entries, elements = [], 0
    for number in range(rng.randrange(1, 4)):
        dtype, bits = rng.choice((("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6)))
        shape = [rng.randrange(1, 5), 4 * rng.randrange(1, 5)]
        entries.append((f"w{number}", dtype, shape,
                        rng.randbytes(math.prod(shape) * bits // 8)))
        elements += math.prod(shape)
    entries.append(("norm", "F32", [4], bytes(16)))
    elements += 4
    source = planted.folder / "m.safetensors"
    source.write_bytes(_raw(entries))
    done = planted.run("inspect", source, "--json")
    text = done.stdout
    parameters = json.loads(text)["checkpoints"][0]["parameters"]
    shapes = {entry["name"]: entry["shape"] for entry in parameters}
    if shapes != {entry[0]: list(entry[2]) for entry in entries}:
        raise planted.wrong(f"inspect has the shapes {shapes}")
    digest = planted.run("digest", source, "--json").stdout
    for name, _, shape, _ in entries:
        if f'"name":"{name}"' in digest.replace(" ", "") and (
                f'[{",".join(map(str, shape))}]'
                not in digest.replace(" ", "")):
            raise planted.wrong(f"digest has another shape of {name}")
    planted.done("convert", source, planted.out, "--format", "huggingface",
                 "--expect-parameters", elements)
    written = (planted.out / "model.safetensors").read_bytes()
    for entry in entries:
        if entry[3] not in written:
            raise planted.wrong(f"{entry[0]} has other bytes")


def not_for_checkpoints(planted):
    """8-bit floats and shape [0] in `.ckpt` files: MindSpore loads neither."""
    rng = planted.rng
    bad = rng.choice((("w", "F8_E4M3", [2], b"\x38\x40"),
                      ("w", "F8_E5M2", [2, 2], b"\x38\x40\x38\x40"),
                      ("w", "F32", [0], b""), ("w", "I64", [0], b"")))
    source = planted.folder / "m.safetensors"
    source.write_bytes(_raw([bad, ("b", "F32", [2], bytes(8))]))
    if rng.random() < 0.5:
        planted.warned("recode", source, planted.out, "--format", "ckpt",
                       names=["w"])
        return
    strategy = planted.folder / "s.json"
    strategy.write_text(json.dumps({
        "current_stage": 0, "parallel_strategy_item": {},
        "parallel_layout_item": {
            name: {"dev_matrix": [2], "tensor_map": [-1] * dims,
                   "opt_weight_shard_step": 0, "opt_weight_shard_size": 0}
            for name, dims in (("w", len(bad[2])), ("b", 1))}}))
    planted.warned("convert", source, planted.out, "--dst-strategy", strategy,
                   "--format", "ckpt", names=["w"])


