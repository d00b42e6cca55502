"""The calls: results are the program's JSON, keywords its options; how callbacks end a call."""

import asyncio
import collections
import dataclasses
import fcntl
import inspect
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import reshard


@pytest.fixture
def target(full, tmp_path):
    shutil.copytree(full.parents[1], tmp_path / "whole")
    return tmp_path / "whole"


def program(*arguments):
    return pathlib.Path(os.environ["RESHARD_BIN"]) / "reshard", *arguments, "--json"


def of_the_program(*arguments, exit_code=0):
    done = subprocess.run(program(*arguments), capture_output=True, text=True)
    assert done.returncode == exit_code, done.stderr
    document = json.loads(done.stdout)
    for name in ("schema_version", "command"):
        document.pop(name)
    return document


# Of a run, not of what it does.
MEASURED = {"seconds", "memory_peak", "anonymous_peak", "memory_planned", "memory_limit", "memory_bytes", "space_free"}


def comparable(document):
    if isinstance(document, dict):
        return {
            name: "measured" if name in MEASURED else comparable(value)
            for name, value in document.items()
        }
    return [comparable(value) for value in document] if isinstance(document, list) else document


def test_verify_finds_what_the_program_finds(target):
    report = reshard.verify(target)
    assert report.ok and report.files == 1 and report.damages == ()
    assert comparable(report.to_dict()) == comparable(of_the_program("verify", str(target)))

    path = target / "rank_0" / "checkpoint_0.ckpt"
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    report = reshard.verify(target, jobs=1)
    assert not report.ok and [d.path for d in report.damages] == ["rank_0/checkpoint_0.ckpt"]
    assert report.damages[0].first_bad_block.index == 0
    of_program = of_the_program("verify", str(target), exit_code=1)
    assert comparable(report.to_dict()) == comparable(of_program)
    with pytest.raises(TypeError, match="use its `ok`"):
        bool(report)


@pytest.fixture
def strategies(samples):
    return {
        "src_strategy": samples / "ckpt_8" / "strategy",
        "dst_strategy": samples / "new" / "strategy",
    }


def options_of(keywords):
    """The keywords as the program's options."""
    options = []
    for name, value in keywords.items():
        for one in value if isinstance(value, list) else [value]:
            word = "--" + name.replace("_", "-")
            options += [word] if one is True else [f"{word}={one}"]
    return options


CHOICES = [
    {},
    {"rank": "1-2", "jobs": 1},
    {"include": ["*.weight"], "exclude": ["adam_*"], "prefix": "out"},
    {"format": "safetensors", "dtype": ["*lm_head.weight=float32"]},
    {"check_replicas": "all", "io": "pread,buffered", "memory_limit": "200M"},
    {"no_checksum": True, "unmatched": "copy"},
]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_conversion_is_the_programs(samples, strategies, tmp_path, choice):
    source = samples / "ckpt_8"
    keywords = {**strategies, **choice}
    planned = reshard.plan(source, tmp_path / "ours", **keywords)
    of_program = of_the_program("plan", source, tmp_path / "ours", *options_of(keywords))
    assert comparable(planned.to_dict()) == comparable(of_program)

    report = reshard.convert(source, tmp_path / "ours", **keywords)
    of_program = of_the_program("convert", source, tmp_path / "theirs", *options_of(keywords))
    ours = report.to_dict()
    assert list(ours) == list(of_program)
    assert (ours.pop("target"), of_program.pop("target")) == (str(tmp_path / "ours"), str(tmp_path / "theirs"))
    assert comparable(ours) == comparable(of_program)
    assert report.published and report.files and [f.path for f in report.files] == [f.path for f in planned.targets]
    for file in report.files:
        assert (tmp_path / "ours" / file.path).read_bytes() == (tmp_path / "theirs" / file.path).read_bytes()


def test_a_plan_is_said_in_words(samples, strategies, tmp_path):
    plan = reshard.plan(
        samples / "ckpt_8", tmp_path / "out", **strategies, include=["lm_head.weight", "nothing"]
    )
    lines = plan.explain().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("files", "parameters", "source strategy", "bytes", "memory", "space"),
        *["warning"] * len(plan.warnings),
        *["note"] * len(plan.notes),
    ]
    assert "left out: 64" in lines[1] and plan.warnings and '"nothing"' in lines[6]
    sizes = {0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 40: "5.0 TiB"}
    assert {count: reshard._reports.size_in_words(count) for count in sizes} == sizes


def test_a_folder_for_transformers_has_the_weights_and_what_belongs_to_them(samples, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"torch_dtype": "float16"}')
    (model / "tokenizer.model").write_bytes(bytes(range(256)))
    (model / "modeling.py").write_text("import os")
    source = {"source": samples / "ckpt_8", "src_strategy": samples / "ckpt_8" / "strategy"}
    choice = {"format": "hf", "weights_only": True, "companions": model}
    report = reshard.convert(target=tmp_path / "hf", **source, **choice, dtype="bf16")
    assert [file.path for file in report.files] == ["model.safetensors", "config.json", "tokenizer.model"]
    assert [w.code for w in report.warnings] == ["other dtype"]
    assert report.chosen_parameters.optimizer == 0 < report.source_parameters.optimizer
    for name in ("config.json", "tokenizer.model"):
        assert (tmp_path / "hf" / name).read_bytes() == (model / name).read_bytes()
    assert reshard.verify(tmp_path / "hf").ok
    assert reshard.verify_against(tmp_path / "hf", source["source"]).equal
    view = reshard.target(**source, **choice)
    assert [file.kind for file in view.files] == ["tensors", "companion", "companion"]
    assert view.open("tokenizer.model").read() == bytes(range(256))
    # Beside the source, or not at all.
    own = reshard.plan(tmp_path / "hf", tmp_path / "again", format="ckpt", companions=True)
    assert [file.path for file in own.targets][1:] == ["config.json", "tokenizer.model"]
    assert len(reshard.plan(tmp_path / "hf", tmp_path / "again", format="ckpt", companions=False).targets) == 1
    with pytest.raises(reshard.NotFoundError, match="tokenizer.json"):
        reshard.plan(target=tmp_path / "no", **source, format="hf", companions=True)
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    encrypted = {"encrypt": "AES-GCM", "encrypt_key_file": tmp_path / "key"}
    with pytest.raises(ValueError, match="companions and encrypt"):
        reshard.plan(target=tmp_path / "no", **source, companions=model, **encrypted)


def test_a_cluster_takes_the_place_of_a_target_strategy(samples, tmp_path):
    source = {"source": samples / "ckpt_8", "src_strategy": samples / "ckpt_8" / "strategy"}
    cluster = {"tp": 2, "pp": 2, "optimizer_sharding": False, "stage_layers": [1, 1]}
    report = reshard.convert(target=tmp_path / "made", **source, **cluster)
    assert [file.path for file in report.files][-1] == "strategy/strategy.ckpt"
    made = tmp_path / "made" / "strategy"
    assert reshard.read_strategy(made).stages == 2
    strategies = {"a_strategy": source["src_strategy"], "b_strategy": made}
    assert reshard.diff(samples / "ckpt_8", tmp_path / "made", **strategies).equal
    assert reshard.verify_against(tmp_path / "made", source["source"]).equal
    with pytest.raises(ValueError, match="dst_strategy"):
        reshard.plan(target=tmp_path / "no", dst_strategy=made, **source, **cluster)
    with pytest.raises(ValueError, match="tp: has to be a whole number from 1 on"):
        reshard.plan(target=tmp_path / "no", **source, tp=0)
    with pytest.raises(ValueError, match="tp=3"):
        reshard.plan(target=tmp_path / "no", **source, tp=3)


def test_names_of_a_model_and_of_a_source(samples, strategies, tmp_path):
    source = {"src_strategy": strategies["src_strategy"], "exclude": "adam_*", "format": "huggingface"}
    hub = reshard.convert(samples / "ckpt_8", tmp_path / "hub", **source, name_rules="llama:mindformers-to-hf")
    assert hub.renamed > 10
    names = set(reshard.open(tmp_path / "hub"))
    assert {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight"} <= names
    # The strategy has the names of MindFormers.
    target = {"dst_strategy": strategies["dst_strategy"], "format": "ckpt"}
    reshard.convert(tmp_path / "hub", tmp_path / "back", **target, name_rules="llama:hf-to-mindformers")
    sides = {"a_strategy": strategies["src_strategy"], "b_strategy": strategies["dst_strategy"]}
    assert reshard.diff(samples / "ckpt_8", tmp_path / "back", **sides, exclude="adam_*").equal
    with pytest.raises(ValueError, match="name_rules='?llama:mindformers-to-hf|name_rules llama:mindformers-to-hf"):
        reshard.plan(tmp_path / "hub", tmp_path / "no", **target, name_rules="llama:mindformers-to-hf")
    with pytest.raises(ValueError, match="name_rules.*one of llama:hf-to-mindformers"):
        reshard.plan(tmp_path / "hub", tmp_path / "no", **target, name_rules="llama")

    renames = {"lm_head.weight": "head", "patterns": {"model.*": "module.model.*"}}
    reshard.convert(samples / "ckpt_8", tmp_path / "named", **source, rename=renames)
    reshard.convert(tmp_path / "named", tmp_path / "by_map", **target, name_map=renames)
    assert reshard.diff(samples / "ckpt_8", tmp_path / "by_map", **sides, exclude="adam_*").equal
    reshard.convert_strategy(strategies["dst_strategy"], tmp_path / "hf.json", name_rules="llama:mindformers-to-hf")
    assert reshard.read_strategy(tmp_path / "hf.json").layout("model.embed_tokens.weight") is not None


def test_the_output_folder_of_mindformers(samples, strategies, tmp_path):
    output = tmp_path / "output"
    shutil.copytree(samples / "ckpt_8", output / "checkpoint", ignore=shutil.ignore_patterns("strategy"))
    shutil.copytree(samples / "ckpt_8" / "strategy", output / "strategy")
    rank_3 = output / "checkpoint" / "rank_3"
    shutil.copy(rank_3 / "llama-1_100.ckpt", rank_3 / "llama-1_110.ckpt")
    target = {"dst_strategy": strategies["dst_strategy"], "prefix": "llama", "names": "mindformers"}
    with pytest.raises(reshard.MismatchError, match="suffix='?common"):
        reshard.convert(output, tmp_path / "resumed", **target)
    report = reshard.convert(output, tmp_path / "resumed", **target, suffix="common")
    assert report.step == "1_100" and len(report.files) == 8
    assert any("strategies in" in note for note in report.notes)
    assert json.loads((tmp_path / "resumed" / "rank_2" / "meta.json").read_text()) == {
        "last_epoch": 1,
        "last_step": 100,
        "last_ckpt_file": "llama_rank_2-1_100.ckpt",
    }
    assert reshard.verify(tmp_path / "resumed").ok
    assert reshard.verify_against(tmp_path / "resumed", output).equal
    (rank_3 / "llama-1_110.ckpt").unlink()
    found = reshard.diff(output, tmp_path / "resumed", b_strategy=strategies["dst_strategy"])
    assert found.equal and found.notes
    assert len(reshard.inspect(output).checkpoints) == 8
    with reshard.open(output) as opened:
        assert opened["lm_head.weight"].shape == (256, 64)


def test_each_replica_once(samples, strategies, tmp_path):
    strategy = strategies["src_strategy"]
    once = {"src_strategy": strategy, "dst_strategy": strategy, "format": "safetensors", "remove_redundancy": True}
    reshard.convert(samples / "ckpt_8", tmp_path / "once", **once)
    files = reshard.inspect(tmp_path / "once").checkpoints
    ranks_with = collections.Counter(parameter.name for file in files for parameter in file.parameters)
    # One of each pair of replicas, one of all ranks that hold a norm, and all without a layout.
    assert ranks_with["lm_head.weight"] == 4 and ranks_with["model.norm_out.weight"] == 1
    assert ranks_with["global_step"] == 8 and set(ranks_with.values()) == {1, 4, 8}
    assert reshard.diff(samples / "ckpt_8", tmp_path / "once", a_strategy=strategy, b_strategy=strategy).equal
    with pytest.raises(ValueError, match="remove_redundancy"):
        reshard.plan(samples / "ckpt_8", tmp_path / "no", src_strategy=strategy, remove_redundancy=True)


def test_mappings_stand_for_files(samples, strategies, tmp_path):
    names = {"lm_head.weight": "head.weight", "patterns": {"model.*": "m.*"}}
    (tmp_path / "names.json").write_text(json.dumps(names))
    files = {rank: next((samples / "ckpt_8" / f"rank_{rank}").glob("*.ckpt")) for rank in range(8)}
    one = reshard.convert(samples / "ckpt_8", tmp_path / "one", **strategies, rename=tmp_path / "names.json")
    two = reshard.convert(files, tmp_path / "two", **strategies, rename=names, dtype={"x*": "float16"})
    assert one.renamed == two.renamed > 1
    for file in one.files:
        assert (tmp_path / "one" / file.path).read_bytes() == (tmp_path / "two" / file.path).read_bytes()
    assert [w.code for w in two.warnings] != [w.code for w in one.warnings]


def test_an_output_is_replaced_only_when_asked(samples, strategies, tmp_path):
    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies)
    assert reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies).already_published
    with pytest.raises(FileExistsError, match="force") as found:
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, exclude="adam_*")
    assert type(found.value) is reshard.AlreadyExistsError
    assert "--" not in str(found.value) and "`" not in str(found.value)
    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, force=True)
    reshard.convert(samples / "ckpt_8", tmp_path / "out", force=True, prune=True, src_strategy=strategies["src_strategy"])
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_dir() and p.name.startswith("rank_")) == ["rank_0"]


def test_shares_publish_once(samples, strategies, tmp_path):
    shares = [
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard=shard)
        for shard in ((0, 2), "1/2")
    ]
    assert [r.published for r in shares] == [False, True] and shares[0].shard.outstanding == (1,)
    again = reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard=(0, 2))
    assert again.shard.already_published and again.already_published
    assert reshard.verify(tmp_path / "out").ok


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), -1, 1e12, "5"])
def test_a_wait_is_a_number_of_seconds(samples, strategies, tmp_path, wait):
    with pytest.raises(reshard.InvalidArgumentError, match="wait: has to be seconds"):
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard=(0, 2), wait=wait)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("keyword", "value", "error", "words"),
    [
        ("force", "yes", reshard.InvalidArgumentError, "expected True or False, found 'yes'"),
        ("prune", np.True_, reshard.InvalidArgumentError, "expected True or False, found "),
        ("shard", (1,), reshard.InvalidArgumentError, "expected two numbers, .*; found 1"),
        ("shard", ("a", 2), reshard.InvalidArgumentError, "expected a whole number, found 'a'"),
        ("shard", 5, TypeError, "'int' object is not iterable"),
        ("include", [3], TypeError, "expected str, .*, not int"),
        ("key_file", 3, TypeError, "expected str, .*, not int"),
        ("key_env", b"KEY", TypeError, "expected a str .*, not bytes"),
        ("dst_strategy", "a\0b", ValueError, "a path with a null character"),
    ],
)
def test_what_a_keyword_cannot_be_is_said_with_its_name(tmp_path, keyword, value, error, words):
    with pytest.raises(error, match=f"^{keyword}: {words}"):
        reshard.convert(tmp_path, tmp_path / "out", **{keyword: value})


def test_a_wait_has_an_end(samples, strategies, tmp_path):
    folder = tmp_path / "out" / ".reshard"
    folder.mkdir(parents=True)
    with open(folder / "begin", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FileExistsError, match="begin: still held by another process after 0 s"):
            reshard.convert(
                samples / "ckpt_8", tmp_path / "out", **strategies, shard=(0, 2), wait=0
            )


def test_a_set_that_is_complete_is_found(samples, strategies, tmp_path):
    keywords = {**strategies, "format": "safetensors", "exclude": "adam_*"}
    first = reshard.convert(samples / "ckpt_8", tmp_path / "out", **keywords)
    assert not first.already_published
    for force in (False, True):
        again = reshard.convert(
            samples / "ckpt_8", tmp_path / "out", **keywords, resume=True, force=force
        )
        assert again.already_published and again.files == ()
    assert reshard.convert(samples / "ckpt_8", tmp_path / "out", **keywords).already_published
    with pytest.raises(reshard.AlreadyExistsError):
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **{**keywords, "exclude": "adam_m*"})
    # What the conversion was told is not to be told again.
    against = reshard.verify_against(tmp_path / "out", samples / "ckpt_8")
    assert against.equal
    assert against.from_origin == ("src_strategy", "dst_strategy", "format", "exclude")


def test_digest_and_diff_are_the_programs(samples, strategies, full, tmp_path):
    a, b = samples / "ckpt_8", full
    found = reshard.digest(a, strategy=strategies["src_strategy"])
    theirs = of_the_program("digest", str(a), "--strategy", strategies["src_strategy"])
    assert comparable(found.to_dict()) == comparable(theirs)
    assert found.digest == reshard.digest(b).digest
    equal = reshard.diff(a, b, a_strategy=strategies["src_strategy"])
    assert equal.equal and {p.relation for p in equal.parameters} == {"equal"}
    theirs = of_the_program("diff", a, b, "--a-strategy", strategies["src_strategy"])
    assert comparable(equal.to_dict()) == comparable(theirs)

    reshard.convert(a, tmp_path / "cast", src_strategy=strategies["src_strategy"], dtype="float32")
    other = tmp_path / "cast" / "rank_0" / "checkpoint_0.ckpt"
    unequal = reshard.diff(b, other, values=True)
    assert not unequal.equal
    assert comparable(unequal.to_dict()) == comparable(of_the_program("diff", b, other, "--values", exit_code=1))

    # What is to be given has the name that the call has for it.
    with pytest.raises(reshard.MismatchError, match=r"\(strategy\)"):
        reshard.digest(a)
    with pytest.raises(reshard.MismatchError, match="a_strategy or b_strategy"):
        reshard.diff(a, b)


def test_verify_against_is_the_programs(samples, strategies, tmp_path):
    source, target = samples / "ckpt_8", tmp_path / "out"
    reshard.convert(source, target, **strategies)
    arguments = ("verify", str(target), "--against", str(source), *options_of(strategies))
    report = reshard.verify_against(target, source, **strategies)
    assert report.equal and report.files == 4
    assert comparable(report.to_dict()) == comparable(of_the_program(*arguments))

    path = target / "rank_2" / "checkpoint_2.ckpt"
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[-5] ^= 0xFF
    path.write_bytes(content)
    report = reshard.verify_against(target, source, **strategies)
    assert [d.path for d in report.differences] == ["rank_2/checkpoint_2.ckpt"]
    assert comparable(report.to_dict()) == comparable(of_the_program(*arguments, exit_code=1))


def test_merge_is_the_programs(samples, strategies, full, tmp_path):
    halves = []
    for name, patterns in (("a", {"include": "adam_*"}), ("b", {"exclude": "adam_*"})):
        whole = {"src_strategy": strategies["src_strategy"]}
        report = reshard.convert(samples / "ckpt_8", tmp_path / name, **whole, **patterns)
        halves.append(str(tmp_path / name / report.files[0].path))
    ours = reshard.merge(halves, tmp_path / "ours.ckpt", segments=True).to_dict()
    theirs = of_the_program("merge", "--segments", *halves, tmp_path / "theirs.ckpt")
    assert (ours.pop("output"), theirs.pop("output")) == (str(tmp_path / "ours.ckpt"), str(tmp_path / "theirs.ckpt"))
    assert comparable(ours) == comparable(theirs)
    assert reshard.diff(tmp_path / "ours.ckpt", full).equal
    with pytest.raises(FileExistsError):
        reshard.merge(halves, tmp_path / "ours.ckpt", segments=True)


@pytest.mark.parametrize(
    "keywords",
    [
        {"rank": "3-1"},
        {"rank": "x"},
        {"memory_limit": "many"},
        {"memory_limit": 0},
        {"io": "map,pread"},
        {"format": "zip"},
        {"dtype": "float12"},
        {"shard": "1"},
        {"shard": (2, 2)},
        {"expect_parameters": "x"},
        {"key_file": "a", "key_env": "b"},
    ],
)
def test_a_wrong_value_is_a_value_error_that_names_the_keyword(samples, strategies, tmp_path, keywords):
    with pytest.raises(ValueError, match=next(iter(keywords))):
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, **keywords)
    assert not (tmp_path / "out").exists()


def test_an_error_says_which_keyword_it_is_about(samples, strategies, tmp_path):
    with pytest.raises(reshard.InvalidArgumentError) as raised:
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, crc=True, no_checksum=True)
    assert raised.value.option == "crc"
    assert pickle.loads(pickle.dumps(raised.value)).option == "crc"
    with pytest.raises(reshard.NotFoundError) as raised:
        reshard.convert(tmp_path / "nowhere", tmp_path / "out", **strategies)
    assert raised.value.option is None


@pytest.mark.parametrize("size, expected", [("200M", 200 * 2**20), ("0.5GB", 2**29), (2**28, 2**28)])
def test_a_size_is_a_number_or_as_the_program_takes_it(samples, strategies, tmp_path, size, expected):
    plan = reshard.plan(samples / "ckpt_8", tmp_path / "out", **strategies, memory_limit=size)
    assert plan.memory_limit == expected


def test_every_option_of_the_program_is_a_keyword():
    # Not of one call: how the program prints, and what stands for others.
    other = {"json", "json_lines", "quiet", "verbose", "log_file", "help", "no_progress", "progress", "long"}
    short = {"src_strategy": "strategy"}  # another word for an option
    # What is the mapping `source` here, and what has a call of its own; `filter` is `include`.
    other |= {"source", "against", "param", "filter"}
    calls = {
        "commit": reshard.commit,
        "convert": reshard.convert,
        "diff": reshard.diff,
        "digest": reshard.digest,
        "inspect": reshard.inspect,
        "merge": reshard.merge,
        "plan": reshard.plan,
        "recode": reshard.recode,
        "report": reshard.report,
        "strategy convert": reshard.convert_strategy,
        "strategy infer": reshard.infer_strategy,
        "strategy make": reshard.make_strategy,
        "strategy merge": reshard.merge_strategies,
    }
    for name, call in calls.items():
        said = subprocess.run([program(name)[0], *name.split(), "--help"], capture_output=True, text=True, check=True).stdout
        said = said.split("As in MindFormers")[0]
        words = " ".join(re.findall(r"^  (-\S+)", said, re.M))
        options = {found.replace("-", "_") for found in re.findall(r"--([a-z][a-z-]+)", words)} - other
        options -= {word for long, word in short.items() if long in options}
        # A word of Python has a _ behind it.
        missing = options - {keyword.rstrip("_") for keyword in inspect.signature(call).parameters}
        assert options and not missing, (name, missing)


def test_progress_goes_to_a_class_used_as_tqdm(samples, strategies, tmp_path):
    bars = []

    class Bar:
        def __init__(self, total, unit, unit_scale, unit_divisor):
            self.total, self.n, self.closed = total, 0, False
            bars.append(self)

        def update(self, by):
            self.n += by

        def close(self):
            self.closed = True

    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, progress=Bar)
    assert [(bar.n == bar.total > 0, bar.closed) for bar in bars] == [(True, True)]


@pytest.mark.parametrize("choice, drawn", [(True, True), (False, False), (None, False)])
def test_a_line_of_progress_is_on_stderr_when_asked(target, capsys, choice, drawn):
    reshard.verify(target, progress=choice)
    assert ("100 %" in capsys.readouterr().err) == drawn
    with pytest.raises(TypeError, match="progress"):
        reshard.verify(target, progress=3)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A safetensors file of 1 GiB without a block on the disk: long to convert, quick to make."""
    path = tmp_path_factory.mktemp("large") / "large.safetensors"
    tensors, size = 64, 16 << 20
    header = {
        f"tensor_{i}": {
            "dtype": "F32",
            "shape": [size // 4096, 1024],
            "data_offsets": [i * size, (i + 1) * size],
        }
        for i in range(tensors)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + tensors * size)
    return path


class Midway:
    """Progress that is told when bytes have been written and others have not."""

    def __init__(self, act):
        self._act = act
        self.seen = None

    def __call__(self, progress):
        if self.seen is None and progress.phase == "write" and 0 < progress.done < progress.total:
            self.seen = progress
            self._act()


def raise_enough():
    raise ZeroDivisionError("enough")


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["cancel", "exception", "signal"])
def test_a_conversion_that_is_ended_midway_leaves_nothing(large, tmp_path, how):
    event = threading.Event()
    act, raised = {
        "cancel": (event.set, reshard.CancelledError),
        "exception": (raise_enough, ZeroDivisionError),
        "signal": (lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt),
    }[how]
    midway = Midway(act)
    with pytest.raises(raised):
        reshard.convert(large, tmp_path / "out", format="huggingface", jobs=1, progress=midway, cancel=event)
    assert midway.seen is not None
    assert not (tmp_path / "out").exists() or files_below(tmp_path / "out") == []


def test_ctrl_c_in_a_child_leaves_nothing(large, tmp_path):
    code = """if True:
        import sys, reshard
        def tell(progress):
            if progress.phase == "write" and progress.done:
                print("writing", flush=True)
        reshard.convert(sys.argv[1], sys.argv[2], format="huggingface", jobs=1, progress=tell)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", code, large, tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "writing\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=250)
    assert child.returncode != 0 and said.rstrip().endswith("KeyboardInterrupt"), said
    assert not (tmp_path / "out").exists() or files_below(tmp_path / "out") == []


def test_a_read_is_ended_midway(large):
    event = threading.Event()
    seen = []

    def tell(progress):
        if progress.done and not seen:
            seen.append(progress)
            event.set()

    with reshard.open(large) as opened, pytest.raises(reshard.CancelledError):
        opened.read(jobs=1, progress=tell, cancel=event)
    assert seen and seen[0].done < seen[0].total == opened.nbytes


def test_the_event_loop_goes_on_beside_a_call(large, tmp_path):
    async def main():
        event = threading.Event()
        call = asyncio.create_task(
            asyncio.to_thread(
                reshard.convert, large, tmp_path / "out", format="huggingface", jobs=1, cancel=event,
                progress=Midway(event.set),
            )
        )
        ticks = 0
        while not call.done():
            ticks += 1
            await asyncio.sleep(0.01)
        with pytest.raises(reshard.CancelledError):
            await call
        return ticks

    assert asyncio.run(main()) > 5


def test_reports_are_frozen_and_travel(target):
    report = reshard.verify(target)
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.files = 3


def test_progress_ends_at_the_total(target):
    seen = []
    reshard.verify(target, progress=seen.append)
    assert seen[-1].done == seen[-1].total > 0
    assert (seen[-1].phase, seen[-1].done_files, seen[-1].total_files) == ("read", 1, 1)


def test_what_progress_raises_is_raised(target):
    class Enough(Exception):
        pass

    def refuse(progress):
        raise Enough

    with pytest.raises(Enough):
        reshard.verify(target, progress=refuse)
    with pytest.raises(KeyboardInterrupt):
        reshard.verify(target, progress=lambda _: os.kill(os.getpid(), 2))


def test_cancel_ends_a_call(target):
    event = threading.Event()
    assert reshard.verify(target, cancel=event).ok
    event.set()
    with pytest.raises(reshard.CancelledError):
        reshard.verify(target, cancel=event)


def test_verify_says_what_is_wrong_with_the_call(tmp_path):
    with pytest.raises(FileNotFoundError):
        reshard.verify(tmp_path)
    with pytest.raises(ValueError, match="jobs"):
        reshard.verify(tmp_path, jobs=-1)


def test_source_ranks(samples):
    strategies = {
        "src_strategy": samples / "ckpt_8" / "strategy",
        "dst_strategy": samples / "new" / "strategy",
    }
    assert reshard.source_ranks(0, **strategies) == [0, 1]
    every = list(reshard.all_source_ranks(**strategies))
    assert every == [(rank, reshard.source_ranks(rank, **strategies)) for rank in range(4)]
    with pytest.raises(ValueError):
        reshard.source_ranks(4, **strategies)
    with pytest.raises(ValueError):
        reshard.source_ranks(0)


def test_shard_auto_takes_what_the_launcher_says(samples, strategies, tmp_path, monkeypatch):
    for index in range(2):
        monkeypatch.setenv("RANK", str(index))
        monkeypatch.setenv("WORLD_SIZE", "2")
        report = reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard="auto")
        assert (report.shard.index, report.shard.count) == (index, 2)
    assert report.published
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="no launcher has set .* give shard=i/n"):
        reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard="auto")


def test_commit_publishes_what_was_left(samples, strategies, tmp_path):
    with pytest.raises(FileNotFoundError):
        reshard.commit(tmp_path / "out")
    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard=(0, 2))
    with pytest.raises(FileNotFoundError, match="1"):
        reshard.commit(tmp_path / "out", wait=1)
    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, shard=(1, 2))
    ours = reshard.commit(tmp_path / "out")
    assert ours.already_published
    assert comparable(ours.to_dict()) == comparable(of_the_program("commit", str(tmp_path / "out")))


def test_status_tells_what_is_left(samples, strategies, tmp_path):
    target = tmp_path / "out"
    with pytest.raises(reshard.NotFoundError):
        reshard.status(target)
    reshard.convert(samples / "ckpt_8", target, **strategies, shard=(0, 2))
    found = reshard.status(target)
    assert found.state == "needs attention" and "shard=1/2" in found.attention
    assert [worker.state for worker in found.workers] == ["finished", "not started"]
    assert 0 < found.bytes_done < found.total_bytes and found.seconds_remaining is None
    program_said = of_the_program("status", str(target), exit_code=3)
    assert "--shard 1/2" in program_said.pop("attention")
    ours = found.to_dict()
    del ours["attention"]
    assert comparable(ours) == comparable(program_said)
    job = next(path for path in (target / ".reshard").iterdir() if path.is_dir())
    with open(job / "shard_1_of_2", "w") as lock:  # as a process has it that does the share
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert reshard.status(target).state == "running"
    assert reshard.status(target).workers[1].state == "dead"
    reshard.convert(samples / "ckpt_8", target, **strategies, shard=(1, 2))
    found = reshard.status(target)
    assert found.state == "published" and found.workers == () and found.attention is None


def test_a_launcher_without_shares_gets_a_hint(samples, strategies, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    held = tmp_path / "out" / ".reshard" / "lock"
    held.parent.mkdir(parents=True)
    with open(held, "w") as lock:  # as another run has it
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(reshard.AlreadyExistsError, match="process 1 of 2 .*shard=auto"):
            reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies)
        monkeypatch.delenv("WORLD_SIZE")
        with pytest.raises(reshard.AlreadyExistsError) as refused:
            reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies)
    assert "shard=auto" not in str(refused.value)


def test_a_lost_strategy_is_the_programs(samples, strategies, full, tmp_path):
    source = samples / "ckpt_8"
    ours = reshard.infer_strategy(source, tmp_path / "ours.json", reference=full, jobs=1).to_dict()
    theirs = of_the_program(
        "strategy", "infer", source, tmp_path / "theirs.json", f"--reference={full}"
    )
    assert ours.pop("output") == str(tmp_path / "ours.json") and theirs.pop("output")
    assert comparable(ours) == comparable(theirs)
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
    assert reshard.diff(source, full, a_strategy=tmp_path / "ours.json").equal
    with pytest.raises(FileExistsError, match="force"):
        reshard.infer_strategy(source, tmp_path / "ours.json", reference=full)


def of_both(call, *command, suffix, folder, **keywords):
    """Makes the call and the command, which write to files of their own, and compares both."""
    ours, theirs = folder / f"ours{suffix}", folder / f"theirs{suffix}"
    report = call(command[-1], ours, **keywords)
    options = [f"--{name.strip('_')}={value}" for name, value in keywords.items()]
    said = of_the_program(*command[:-1], command[-1], theirs, *options)
    found = report.to_dict()
    for document, path in ((found, ours), (said, theirs)):
        assert document.pop("output", document.pop("target", None)) == str(path)
    assert comparable(found) == comparable(said)
    if call is reshard.recode:  # a set that is complete is found
        assert call(command[-1], ours, **keywords).already_published
    else:
        with pytest.raises(FileExistsError, match="force"):
            call(command[-1], ours, **keywords)
    call(command[-1], ours, **keywords, force=True)
    return ours, theirs, report


def test_strategies_are_made_converted_and_merged_as_the_program_does(samples, full, tmp_path):
    entry = {"parameter": "*"}
    cut = {"parameter": "lm_head.weight", "cuts": [4, 1]}
    spec = {"devices": 4, "parameters": [cut, entry]}
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec))
    made, theirs, report = of_both(
        reshard.make_strategy, "strategy", "make", file, suffix=".json", folder=tmp_path, from_=full
    )
    assert made.read_bytes() == theirs.read_bytes() and report.devices_per_stage == 4
    reshard.make_strategy(spec, tmp_path / "again.json", from_=full)
    assert (tmp_path / "again.json").read_bytes() == made.read_bytes()
    assert reshard.read_strategy(made).layout("lm_head.weight").device_matrix == (4,)
    with pytest.raises(ValueError, match="from_"):
        reshard.make_strategy(spec, tmp_path / "without.json")
    with pytest.raises(ValueError, match="the specification"):
        reshard.make_strategy({"devices": "four"}, tmp_path / "without.json")
    options = {"tp": 2, "dp": 2, "pp": 2}
    source = {"like": samples / "ckpt_8", "src_strategy": samples / "ckpt_8" / "strategy"}
    ours, theirs = tmp_path / "ours_like.json", tmp_path / "theirs_like.json"
    report = reshard.make_strategy(ours, **source, **options)
    reshard.make_strategy(output=ours, **source, **options, force=True)
    of_the_program(
        "strategy", "make", theirs, "--like", source["like"], "--src-strategy", source["src_strategy"],
        *(f"--{name}={number}" for name, number in options.items()),
    )  # fmt: skip
    assert ours.read_bytes() == theirs.read_bytes() and report.stages == 2
    assert any("layouts cut them" in note for note in report.notes)
    sharded = tmp_path / "sharded.json"
    reshard.make_strategy(sharded, like=full, **options, optimizer_sharding=True, stage_layers=[1, 1])
    assert reshard.read_strategy(sharded).layout("model.tok_embeddings.embedding_weight").opt_weight_shard_size == 2
    with pytest.raises(ValueError, match="stage_layers"):
        reshard.make_strategy(tmp_path / "without.json", like=full, **options, stage_layers=[2])
    with pytest.raises(TypeError):
        reshard.make_strategy(tmp_path / "without.json")
    assert not (tmp_path / "without.json").exists()

    (tmp_path / "converted").mkdir()
    ours, theirs, _ = of_both(
        reshard.convert_strategy, "strategy", "convert", samples / "ckpt_8" / "strategy",
        suffix=".json", folder=tmp_path / "converted",
    )  # fmt: skip
    assert ours.read_bytes() == theirs.read_bytes()
    renamed = tmp_path / "renamed.json"
    reshard.convert_strategy(ours, renamed, rename={"lm_head.weight": "head"})
    assert reshard.read_strategy(renamed).layout("head") is not None

    (tmp_path / "merged").mkdir()
    ours, theirs, report = of_both(
        reshard.merge_strategies, "strategy", "merge", samples / "new" / "strategy",
        suffix=".ckpt", folder=tmp_path / "merged",
    )  # fmt: skip
    assert ours.read_bytes() == theirs.read_bytes() and report.stages == 2


def test_files_are_written_again_in_the_other_format(samples, full, tmp_path):
    ours, theirs, report = of_both(
        reshard.recode, "recode", samples / "ckpt_8", suffix="", folder=tmp_path,
        format="safetensors", files="-1_100[.]",
    )  # fmt: skip
    assert [file.path for file in report.files] == sorted(
        str(path.relative_to(ours)) for path in ours.glob("rank_*/*.safetensors")
    )
    for file in report.files:
        assert (ours / file.path).read_bytes() == (theirs / file.path).read_bytes()
    reshard.recode(full, tmp_path / "renamed", format="safetensors", rename={"lm_head.weight": "h"})
    assert "h" in reshard.open(next((tmp_path / "renamed").glob("*.safetensors")))
    with pytest.raises(ValueError, match="^format: "):
        reshard.recode(full, tmp_path / "none", format="numpy")


@pytest.mark.parametrize(
    "keywords", [{}, {"param": ["lm_head.weight"], "exclude": "adam_*"}, {"format": "huggingface"}]
)
def test_a_report_is_the_programs(samples, strategies, tmp_path, keywords):
    given = {**strategies, **keywords}
    if "format" in keywords:
        del given["dst_strategy"]
    ours = reshard.report(samples / "ckpt_8", tmp_path / "ours.html", **given)
    theirs = of_the_program(
        "report", samples / "ckpt_8", "-o", tmp_path / "theirs.html", *options_of(given)
    )
    assert ours.bytes == theirs["bytes"] and ours.output == str(tmp_path / "ours.html")
    page = (tmp_path / "ours.html").read_bytes()
    assert page == (tmp_path / "theirs.html").read_bytes()
    assert "<iframe srcdoc=" in ours._repr_html_()
    with pytest.raises(FileExistsError):
        reshard.report(samples / "ckpt_8", tmp_path / "ours.html", **given)


def test_a_page_names_options_as_keywords(samples, tmp_path):
    report = reshard.report(
        samples / "ckpt_8", tmp_path / "page.html",
        src_strategy=samples / "ckpt_8" / "strategy", include=["lm_head.weight", "nothing*"],
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert report.warnings and all("--" not in w.message and "`" not in w.message for w in report.warnings)
    assert "--include" not in page and "Warnings" in page


def test_a_conversion_draws_itself(samples, strategies, tmp_path):
    page = tmp_path / "run.html"
    reshard.convert(samples / "ckpt_8", tmp_path / "out", **strategies, report=page)
    said = page.read_text(encoding="utf-8")
    assert "Conversion report" in said and "lm_head.weight" in said
    # What is wrong with the page is said before anything is written.
    with pytest.raises(FileExistsError):
        reshard.convert(samples / "ckpt_8", tmp_path / "other", **strategies, report=page)
    assert not (tmp_path / "other").exists()


def test_what_is_read_or_made_is_no_report(samples, strategies, tmp_path):
    source = samples / "ckpt_8"
    whole = tmp_path / "whole"
    reshard.convert(source, whole, src_strategy=source / "strategy", format="huggingface", shard_size=100_000)
    names = tmp_path / "names.json"
    names.write_text('{"lm_head.weight": "head.weight"}')
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    (tmp_path / "hard").hardlink_to(min(whole.glob("model-*")))
    before = {path: path.read_bytes() for path in [*whole.rglob("*"), names, key] if path.is_file()}
    refused = pytest.raises(ValueError, match="choose another file")
    for page in [min(whole.glob("model-*")), whole / "model.safetensors.index.json", names, tmp_path / "hard"]:
        with refused:
            reshard.convert(
                whole, tmp_path / "out", format="huggingface", rename=names, report=page, force=True
            )
        with refused:
            reshard.report(whole, page, format="huggingface", rename=names, force=True)
    with refused:
        reshard.convert(source, tmp_path / "out", **strategies, key_file=key, report=key, force=True)
    with refused:
        reshard.convert(
            whole, tmp_path / "out", format="huggingface", report=tmp_path / "out" / "model.safetensors"
        )
    with refused:
        reshard.merge([whole], min(whole.glob("model-*")), segments=True, force=True)
    assert {path: path.read_bytes() for path in before} == before
    assert not (tmp_path / "out").exists()
