"""Results in words: `repr`, `str`, tables in notebooks, and strategies in place of their paths."""

import os
import subprocess
import sys
import types

import pytest
import reshard


@pytest.fixture(scope="module")
def of_64_ranks(samples):
    made = [os.environ["RESHARD_BIN"] + "/reshard-gen", "ckpt_64", "--layers", "1", "--hidden", "64"]
    made += ["--ffn", "128", "--vocab", "256", "--tp", "8", "--dp", "8"]
    subprocess.run(made, cwd=samples, check=True, stdout=subprocess.DEVNULL)
    return samples / "ckpt_64"


@pytest.fixture
def strategies(samples):
    return {
        "src_strategy": samples / "ckpt_8" / "strategy",
        "dst_strategy": samples / "new" / "strategy",
    }


@pytest.fixture
def reports(of_64_ranks, tmp_path):
    strategy = reshard.read_strategy(of_64_ranks / "strategy")
    out = tmp_path / "out"
    return [
        reshard.inspect(of_64_ranks),
        strategy,
        strategy.parameters[0],
        reshard.plan(of_64_ranks, out, src_strategy=strategy),
        reshard.convert(of_64_ranks, out, src_strategy=strategy),
        reshard.verify(out),
        reshard.digest(of_64_ranks, strategy=strategy),
        reshard.diff(of_64_ranks, out, a_strategy=strategy, values=True),
    ]


def test_each_report_fits_a_line_and_a_screen(reports):
    for report in reports:
        name = type(report).__name__
        assert repr(report).startswith(f"{name}(") and len(repr(report)) <= 80
        lines = str(report).splitlines()
        assert lines[0] == name and 2 < len(lines) <= 23
        assert max(map(len, lines)) <= 80 and not [line for line in lines if line != line.rstrip()]
        page = report._repr_html_()
        assert f"<b>{name}</b>" in page and page.count("<table>") == page.count("</table>") > 0


def test_an_inspection_of_64_ranks_counts_what_it_leaves_out(reports):
    inspected, strategy = str(reports[0]), str(reports[1])
    assert "checkpoints: 64" in inspected and "rank_0/" in inspected and "more" in inspected
    assert "tensor parallel 8, data parallel 8" in strategy
    assert reports[0]._repr_html_().count("rank_") == 20
    assert "<p>and 44 more</p>" in reports[0]._repr_html_()


def test_words_of_values():
    warning = reshard.WarningMessage("c", "a <b> " + "word " * 30)
    report = reshard.StrategyReport(
        "out\n.ckpt", 2, 8, 5, bytes=3 << 20, warnings=(), notes=("first\x1b[1m", "second")
    )
    lines = str(report).splitlines()[1:6]
    assert lines[0].split() == ["output", "out\\n.ckpt"] and lines[4].split() == ["bytes", "3.0", "MiB"]
    assert lines[1] == "  stages             2"
    assert str(report).endswith("note: first\\x1b[1m\n  note: second")
    found = reshard.CommitReport("t", False, (warning,))
    assert "already_published  False" in str(found) and str(found).count("word") == 30
    assert "a &lt;b&gt; word" in found._repr_html_()


def test_reports_of_shares_add_up_to_that_of_one_process(of_64_ranks, tmp_path):
    def convert(target, **keywords):
        cuts = {"src_strategy": of_64_ranks / "strategy", "tp": 4, "dp": 4}
        return reshard.convert(of_64_ranks, tmp_path / target, **cuts, **keywords)

    alone = convert("alone")
    shares = [convert("shared", shard=(i, 3)) for i in (2, 0, 1)]
    unfinished = reshard.ConvertReport.of_shares(shares[:2])
    assert not unfinished.published and unfinished.shard.count == 3
    for whole in map(reshard.ConvertReport.of_shares, (shares, shares[::-1], iter(shares))):
        assert whole.published and whole.shard is None and len(whole.files) > 10
        for name in ("files", "bytes_written", "source_ranks", "parameters", "warnings"):
            assert getattr(whole, name) == getattr(alone, name), name
        assert whole.bytes_read == sum(share.bytes_read for share in shares)
        assert whole.memory_peak == max(share.memory_peak for share in shares)
        assert whole.io.sources_mapped == sum(share.io.sources_mapped for share in shares)
    again = convert("shared", shard=(0, 3))
    assert reshard.ConvertReport.of_shares([again]).already_published
    with pytest.raises(ValueError, match="expected one report or more"):
        reshard.ConvertReport.of_shares([])


def test_reports_of_parts_of_a_file_add_up(samples, strategies, tmp_path):
    share = reshard.convert(samples / "ckpt_8", tmp_path / "out", shard=(0, 1), **strategies)
    warning = reshard.WarningMessage("code", "text")
    replicas = reshard.Replicas(1, 2, 3, 0, ())
    parts = [
        share.__replace__(
            files=(reshard.WrittenFile("a", 10 + i),),
            shard=reshard.ShardOutcome(i, 2, i == 0, False, ()),
            values_lost=7 * i,  # told by the share that publishes
            warnings=(warning,),
            notes=(str(i),),
            replicas=replicas if i else None,
        )
        for i in range(2)
    ]
    whole = reshard.ConvertReport.of_shares(parts)
    assert whole.files == (reshard.WrittenFile("a", 21),) and whole.values_lost == 7
    assert whole.warnings == (warning,) and whole.notes == ("0", "1") and whole.replicas == replicas
    parts[0] = parts[0].__replace__(replicas=replicas)
    assert reshard.ConvertReport.of_shares(parts).replicas == reshard.Replicas(2, 4, 6, 0, ())


def test_a_strategy_is_taken_in_place_of_its_path(samples, strategies, tmp_path):
    source, target = (reshard.read_strategy(path) for path in strategies.values())
    both = {"src_strategy": source, "dst_strategy": target}
    ckpt = samples / "ckpt_8"
    assert reshard.source_ranks(0, **both) == reshard.source_ranks(0, **strategies)
    assert list(reshard.all_source_ranks(**both)) == list(reshard.all_source_ranks(**strategies))
    assert len(reshard.convert(ckpt, tmp_path / "out", **both).files) == 4
    assert reshard.verify_against(tmp_path / "out", ckpt, **both).equal
    assert reshard.report(ckpt, tmp_path / "layout.html", **both).bytes
    assert len(reshard.target(ckpt, **both).files) == 4
    assert reshard.diff(ckpt, tmp_path / "out", a_strategy=source, b_strategy=target).equal
    assert reshard.inspect(ckpt, strategy=source).sharded
    with reshard.open(ckpt, source) as opened:
        assert opened["lm_head.weight"].shape == (256, 64)
    made = reshard.make_strategy(tmp_path / "made.ckpt", like=ckpt, src_strategy=source, tp=2)
    assert made.stages == 1
    assert reshard.convert_strategy(source, tmp_path / "source.json").layouts


@pytest.mark.parametrize("installed", [True, False])
def test_a_bar_is_tqdms_if_it_is_installed(full, monkeypatch, capsys, installed):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.total, self.n, self.options = 0, 0, options
            bars.append(self)

        def update(self, by):
            self.n += by

        def close(self):
            pass

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar) if installed else None)
    reshard.verify(full.parents[1], progress=True)
    assert len(bars) == installed and ("100 %" in capsys.readouterr().err) != installed
    if installed:
        assert bars[0].n == bars[0].total > 0 and bars[0].options["leave"] is False
