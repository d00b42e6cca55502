"""Faults of targets: outputs that would destroy something, files that are left
over, sets that are called complete, casts."""

import dataclasses
import json
import os
import shutil

import numpy as np

import journeys
import training as trainings
from cases import row
from ciphers import MODES
from journeys import Choice
from planted import held
from training import OPTIMIZERS, of_float, values_of
from writers import safetensors_bytes, write_safetensors

# Outputs that would destroy something


def _source_of(planted):
    """Writes any source; returns the training run, SRC and options."""
    training = planted.training()
    store = planted.store(training)
    source, options = planted.written(training, store)
    if planted.rng.random() < 0.2:
        (planted.folder / "names.json").write_text('{"nothing": "other"}')
        options += ["--rename", planted.folder / "names.json"]
    return training, store, source, options


def _inputs(planted):
    return [path for path in sorted(planted.folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
            and planted.out not in path.parents]


def _kept(planted, before):
    after = planted.digests([path for path in before if path.exists()])
    lost = [str(path) for path in before if after.get(path) != before[path]]
    if lost:
        raise planted.wrong(f"destroyed: {lost}")


def destroyed_input(planted):
    """An output of any command is a file that it reads, by any name."""
    rng = planted.rng
    training, store, source, options = _source_of(planted)
    inputs = _inputs(planted)
    strategies = [path for path in inputs if "_strategy" in str(path)]
    data = [path for path in inputs if (planted.folder / "src")
            in path.parents]
    src = [option for index, option in enumerate(options)
           if "--src-strategy" in options[max(index - 1, 0):index + 1]]
    key = [option for index, option in enumerate(options)
           if "--key-file" in options[max(index - 1, 0):index + 1]]
    before = planted.digests(inputs)
    strategy = ["--strategy", *src[1:]] if src else []
    ways = ["log of convert", "log of plan", "report of convert"]
    if not store.as_sources:
        ways += ["log of digest", "log of inspect", "log of diff",
                 "report", "log of report", "log of verify"]
    if strategies:
        ways += ["log of ranks", "log of strategy", "strategy convert"]
    if store.is_ranks:
        ways += ["log of recode", "merge"]
    way = rng.choice(ways)
    victim = rng.choice(inputs)
    if way in ("log of digest", "log of inspect", "log of diff", "report",
               "log of report", "log of recode", "merge"):
        victim = rng.choice(data)
    if way in ("log of ranks", "log of strategy", "strategy convert"):
        victim = rng.choice(strategies)
    name = planted.another_name(victim)
    log = ["--log-file", name]
    form = "safetensors" if store.container == "ckpt" else "ckpt"
    command = {
        "log of convert": lambda: ["convert", *source, planted.out, *options,
                                   *log],
        "log of plan": lambda: ["plan", *source, planted.out, *options, *log],
        "report of convert": lambda: ["convert", *source, planted.out,
                                      *options, "--report", name, "--force"],
        "log of digest": lambda: ["digest", *source, *strategy, *key, *log],
        "log of inspect": lambda: ["inspect", *source, *strategy, *key, *log],
        "log of diff": lambda: ["diff", *source, *source, *(
            ["--a-strategy", *src[1:], "--b-strategy", *src[1:]]
            if src else []), *key, *log],
        "report": lambda: ["report", *source, *src, *key, "-o", name,
                           "--force"],
        "log of report": lambda: ["report", *source, *src, *key, "-o",
                                  planted.folder / "r.html", *log],
        "log of verify": lambda: ["verify", planted.out, "--against", *source,
                                  *options, *log],
        "log of ranks": lambda: ["ranks", "0", *_strategies(options), *log],
        "log of strategy": lambda: ["strategy", "show", victim, *log],
        "strategy convert": lambda: ["strategy", "convert", victim, name,
                                     "--force"],
        "log of recode": lambda: [
            "recode", data[0] if store.where != "rank_{rank}"
            else planted.folder / "src", planted.out, "--format", form, *key,
            *log],
        "merge": lambda: ["merge", "--segments", *key, *data, name,
                          "--force"],
    }[way]
    if way == "log of recode" and store.where != "rank_{rank}":
        victim = data[0]
        os.remove(name) if name.is_symlink() else None
        log[1] = victim
    if way == "log of verify":
        planted.done("convert", *source, planted.out, *options)
    # A link in the place of an output is refused as such.
    arguments = command()
    is_link = name.is_symlink() and "--log-file" not in arguments
    try:
        planted.refused(*arguments, codes=(2, 6) if is_link else (2,))
    finally:
        _kept(planted, before)


def _strategies(options):
    return [option for index, option in enumerate(options)
            if {"--src-strategy", "--dst-strategy"}
            & set(options[max(index - 1, 0):index + 1])]


def destroyed_output(planted):
    """A log or report is a file that the same command is to write."""
    rng = planted.rng
    training, _, source, options = _source_of(planted)
    options += planted.target_format(training)
    if rng.random() < 0.3 and "unified" not in options and (
            "huggingface" not in options):
        options += ["--names", rng.choice(("m{rank}.{ext}",
                                           "rank_{rank}/m{rank}.{ext}"))]
    planted.done("convert", *source, planted.out, *options)
    written = [path.relative_to(planted.out)
               for path in sorted(planted.out.rglob("*")) if path.is_file()]
    shutil.rmtree(planted.out)
    name = planted.out / rng.choice(written)
    name.parent.mkdir(parents=True)
    if rng.random() < 0.3:
        link = planted.folder / "link"
        os.symlink(planted.out, link)
        name = link / name.relative_to(planted.out)
    flag = rng.choice(("--log-file", "--report"))
    planted.refused("convert", *source, planted.out, *options, flag, name,
                    *rng.choice(([], ["--force"])), codes=(2,))
    if (planted.out / "manifest.json").exists():
        raise planted.wrong("a set was published")


# What a reader would take

FAMILIES = ("ranks", "unified", "huggingface")


def _family(planted):
    """Writes a source; returns training, SRC, options and a family."""
    family = planted.rng.choice(FAMILIES)
    training = planted.training("both" if family == "ranks" else "to full")
    source, options = planted.written(training, planted.store(training))
    if family == "ranks":
        options += planted.rng.choice(([], ["--format", "ckpt"],
                                       ["--format", "safetensors"]))
    else:
        options += ["--format", family]
    return training, source, options, family


def _foreign(planted, training, family, folder, extension):
    """Puts a file there that a reader would take; returns its path."""
    rng = planted.rng
    tensor = values_of(rng, "Float32", (4, 4))
    rows = [row("other.weight", "Float32", tensor)]
    if family == "ranks":
        rank = rng.randrange(training.target_ranks)
        path = folder / f"rank_{rank}" / (
            rng.choice(("net-1_1", "llama-900_900", "z-3_1")) + extension)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safetensors_bytes(rows, {}) if extension
                         == ".safetensors" else
                         journeys.checkpoint_bytes(rows))
        return path
    name = "hyper_param.safetensors"
    if family == "huggingface":
        name = rng.choice(("param_name_map.json", "rank_0/net-1_1.ckpt",
                           "rank_0/net-1_1.safetensors"))
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "param_name_map.json":
        write_safetensors(folder / "part0.safetensors", rows, {})
        path.write_text(json.dumps({
            "metadata": {"total_size": 64},
            "weight_map": {"other.weight": "part0.safetensors"}}))
    elif name.endswith(".ckpt"):
        path.write_bytes(journeys.checkpoint_bytes(rows))
    else:
        write_safetensors(path, rows, {})
    return path


def _names(planted, path):
    """Returns what a message may call a file: its name, or the folder of ranks
    that it lies in."""
    return path.name, path.relative_to(planted.out).parts[0] + ":"


def _extension(options, source):
    if "--format" in options:
        kind = options[options.index("--format") + 1]
        return ".ckpt" if kind == "ckpt" else ".safetensors"
    files = [path for path in source.rglob("*")
             if path.suffix in (".ckpt", ".safetensors")]
    return files[0].suffix


def left_over(planted):
    """A file at the target, of somebody else, that a reader would take."""
    training, source, options, family = _family(planted)
    if family == "unified" and not _hyper_free(training):
        options += ["--include", "*.weight", "--include", "*.gamma"]
        if not _hyper_free(training, ("weight", "gamma")):
            return left_over_again(planted)
    extension = _extension(options, planted.folder / "src")
    path = _foreign(planted, training, family, planted.out, extension)
    before = path.read_bytes()
    force = planted.rng.choice(([], ["--force"]))
    planted.refused(planted.rng.choice(("convert", "convert", "plan")),
                    *source, planted.out, *options, *force,
                    codes=(3, 6), one_of=_names(planted, path))
    if path.read_bytes() != before:
        raise planted.wrong(f"{path} was changed")
    if (planted.out / "manifest.json").exists():
        raise planted.wrong("a set was published")
    return None


def left_over_again(planted):
    shutil.rmtree(planted.folder)
    planted.folder.mkdir()
    return left_over(planted)


def _hyper_free(training, ends=None):
    """Whether a unified folder of the training run has no
    hyper_param.safetensors."""
    return all(name in training.source.names() for name in held(training)
               if not ends or name.endswith(ends))


def left_over_set(planted):
    """An older set of reshard's at the target, of which a reader would take a
    file; --prune removes it."""
    training, source, options, family = _family(planted)
    older = list(options)
    if family == "ranks":
        older += ["--prefix", "older-9_"]  # a greater step than none
    else:
        at = older.index("--format") + 1
        older[at] = "unified" if family == "huggingface" else "huggingface"
        if family == "unified":
            # Readers prefer the map to the index, so nothing older is taken.
            older[at] = "ckpt"
            options[options.index("--format") + 1] = "huggingface"
            family = "huggingface"
    planted.done("convert", *source, planted.out, *older)
    planted.refused("convert", *source, planted.out, *options, "--force",
                    codes=(3, 6), names=["--prune"])
    planted.done("verify", planted.out)
    planted.done("convert", *source, planted.out, *options, "--force",
                 "--prune")
    planted.right(training, options)
    planted.done("verify", planted.out)
    left = [path.name for path in planted.out.rglob("*")
            if path.name.startswith("older-9_")
            and "part_records" not in str(path)]
    if left:
        raise planted.wrong(f"left: {left}")


def unlisted(planted):
    """A checkpoint that came after the conversion and that readers take."""
    training, source, options, family = _family(planted)
    if family == "unified" and not _hyper_free(training):
        family = "huggingface"
        options[options.index("--format") + 1] = family
    planted.done("convert", *source, planted.out, *options)
    planted.done("verify", planted.out)
    extension = _extension(options, planted.folder / "src")
    path = _foreign(planted, training, family, planted.out, extension)
    done = planted.run("verify", planted.out)
    words = done.stdout + done.stderr
    if done.returncode != 1 or not any(name in words
                                       for name in _names(planted, path)):
        raise planted.wrong(f"verify: exit {done.returncode}, not 1 with "
                            f"{path.name}: {done.stdout}")


# Sets that are called complete


def stale_complete(planted):
    """A source or target is another than at publication."""
    rng = planted.rng
    training = planted.training()
    store = planted.store(training)
    source, options = planted.written(training, store)
    options += planted.target_format(training)
    again = rng.choice((["--resume"], ["--shard", "0/2"], ["--shard", "1/2"]))
    first = [["--shard", "0/2"], ["--shard", "1/2"]] if (
        "--shard" in again) else [[]]
    for part in first:
        planted.done("convert", *source, planted.out, *options, *part)
    # Nothing has changed.
    planted.done("convert", *source, planted.out, *options, *again)
    targets = [path for path in journeys.data_files(planted.out).values()
               if path.suffix != ".json" and path.stat().st_size]
    sources = [path for path in journeys.data_files(
        planted.folder / "src").values()
        if path.suffix != ".json" and path.stat().st_size > 200]
    what = rng.choice(("sources changed", "sources replaced",
                       "target changed"))
    changed = sources if what.startswith("sources") else (
        rng.sample(targets, min(1, len(targets))))
    if not changed:
        return
    for path in changed:
        data = bytearray(path.read_bytes())
        os.chmod(path, 0o644)
        if what.endswith("changed"):
            data[-1] ^= 1
            path.write_bytes(data)
        else:
            other = path.with_name("another.tmp")
            other.write_bytes(data)
            os.replace(other, path)
    done = planted.run("convert", *source, planted.out, *options, *again)
    if done.returncode == 0:
        raise planted.wrong(f"{what}: exit 0")


def shard_again(planted):
    """A shard that runs again after publication has nothing to do, encrypted
    targets included."""
    training = planted.training(accept=lambda found: found.target_ranks > 1)
    source, options = planted.written(training, planted.store(training))
    options += ["--format", "ckpt"]
    key = None
    if planted.rng.random() < 0.7:
        key = planted.rng.randbytes(16)
        (planted.folder / "target_key").write_bytes(key)
        options += ["--encrypt", planted.rng.choice(list(MODES)),
                    "--encrypt-key-file", planted.folder / "target_key"]
    for part in ("0/2", "1/2", "0/2", "1/2"):
        planted.done("convert", *source, planted.out, *options, "--shard",
                     part)
    planted.done("convert", *source, planted.out, *options, "--shard", "1/2",
                 "--force")
    planted.right_ranks(training, key=key)


def stale_listed(planted):
    """Files of an older set stay in the warning until --prune removes
    them."""
    training = planted.training(
        "both", lambda found: found.target_ranks > found.source_ranks)
    source, options = planted.written(training, planted.store(training))
    planted.done("convert", *source, planted.out, *options)
    back = [option for index, option in enumerate(options)
            if "--dst-strategy" not in options[max(index - 1, 0):index + 1]]
    stale = f"rank_{training.target_ranks - 1}"
    for _ in range(2):
        planted.warned("convert", *source, planted.out, *back, "--force",
                       names=["--prune"])
    planted.done("convert", *source, planted.out, *back, "--force", "--prune")
    if (planted.out / stale).exists():
        raise planted.wrong(f"{stale} is left")
    planted.right_ranks(dataclasses.replace(training, target=None))


# Ranks without parameters


def empty_ranks(planted):
    """Encrypted sets and sets with CRCs in which ranks have no parameter."""
    rng = planted.rng

    def fits(training):
        return len(training.target.stages) > 1 and _of_one_stage(training)

    training = planted.training("both", fits)
    source, options = planted.written(training, planted.store(training))
    choice = Choice(include=[rng.choice(_of_one_stage(training))])
    options += choice.options(planted.folder)
    key, keys = None, []
    form = rng.choice(("ckpt", "ckpt", "safetensors"))
    options += ["--format", form]
    if form == "ckpt" and rng.random() < 0.6:
        key = rng.randbytes(16)
        (planted.folder / "target_key").write_bytes(key)
        keys = ["--encrypt-key-file", planted.folder / "target_key"]
        options += ["--encrypt", rng.choice(list(MODES)), *keys]
    else:
        options += ["--crc"]
    shards = rng.choice(([[]], [["--shard", "0/2"], ["--shard", "1/2"]]))
    for part in shards:
        planted.done("convert", *source, planted.out, *options, *part)
    planted.right_ranks(training, choice, key=key)
    plain = ["--key-file", planted.folder / "target_key"] if key else []
    planted.done("verify", planted.out, *plain)
    against = [option for option in options if option != "--crc"]
    if "--encrypt" in against:
        at = against.index("--encrypt")
        del against[at:at + 2]
    planted.done("verify", planted.out, "--against", *source, *against)


def _of_one_stage(training):
    """Returns parameters that one target stage alone has, and of which ranks
    hold the same."""
    counts = {}
    same = {p.name for p in training.parameters if p.kind == "same"}
    for stage in training.target.stages:
        for name in stage:
            counts[name] = counts.get(name, 0) + 1
    return [name for name, count in counts.items()
            if count == 1 and name in training.source.names()
            and name in same and name in held(training)]


# Casts


def cast_states(planted):
    """--dtype TYPE leaves the states of every optimizer alone."""
    training = planted.training(accept=lambda found: OPTIMIZERS[
        found.optimizer][0] and any(p.of and p.states is False
                                    for p in found.parameters))
    source, options = planted.written(training, planted.store(training))
    choice = Choice(dtypes=[(None, planted.rng.choice(
        ("float16", "bfloat16", "float64")))])
    options += choice.options(planted.folder)
    options += planted.target_format(training)
    planted.done("convert", *source, planted.out, *options)
    planted.right(training, options, choice)


def repeated_weights(planted):
    """A prefix that no optimizer has, whose tensors repeat the weights: they
    count as weights, and a warning says so."""
    prefix = planted.rng.choice(("ref_model.", "target_net.", "ema.", "teacher.",
                                 "momentum_encoder."))
    training = planted.training("from full")
    weights = [p for p in training.parameters if p.states]
    for p in weights:
        name = prefix + p.name
        training.parameters.append(dataclasses.replace(
            p, name=name, of=p.name, states=False))
        training.full[name] = trainings.values_of(planted.rng, p.dtype,
                                                  p.shape)
        training.files[0].append(row(name, p.dtype, training.full[name]))
    for name in [p.name for p in training.parameters]:
        if name.startswith(("ema.", "ref_model.", "target_net.")) and (
                not name.startswith(prefix)):
            training.files[0] = [r for r in training.files[0]
                                 if r[0] != name]
    training.files[0] = list({r[0]: r for r in training.files[0]}.values())
    training.target = None
    source, options = planted.written(training, planted.store(
        training, container="huggingface"))
    choice = Choice(dtypes=planted.rng.choice(([], [(None, "float16")])))
    options += [*choice.options(planted.folder), "--format", "huggingface"]
    planted.warned("convert", *source, planted.out, *options,
                   names=[prefix, len(weights), "--exclude"])
    planted.right_whole(training, choice=choice)


def cast_to_zero(planted):
    """Nonzero values that a cast makes zero are counted."""
    rng = planted.rng
    training = planted.training(accept=lambda found: any(
        p.states and p.dtype == "Float32" and len(p.shape) > 1
        and p.kind == "same" for p in found.parameters))
    name = rng.choice([p.name for p in training.parameters
                       if p.states and p.dtype == "Float32"
                       and len(p.shape) > 1 and p.kind == "same"])
    full = np.array(training.full[name])
    places = rng.sample(range(full.size), rng.randrange(1, min(20, full.size + 1)))
    full.reshape(-1)[places] = [rng.choice((1e-9, -3e-12, 1e-30))
                                for _ in places]
    training.full[name] = full
    training.files.clear()
    again = dict(training.full)
    trainings.fill(rng, training)
    assert all(np.array_equal(again[key], training.full[key])
               for key in again)
    source, options = planted.written(training, planted.store(training))
    choice = Choice(dtypes=[(name, "float16")])
    options += choice.options(planted.folder)
    options += planted.target_format(training)
    planted.warned("convert", *source, planted.out, *options,
                   names=["zero", name])
    planted.right(training, options, choice)
    if of_float(full, "Float16").astype(np.float32).all():
        raise planted.wrong("no value was made zero")

