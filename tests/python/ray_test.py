"""reshard.ray on a real Ray of one machine: shares, workers that die, errors, and what ends a call."""

import fcntl
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import types

import pytest
import reshard
import reshard.ray
import shown_programs

STRATEGIES = {"src_strategy": "ckpt_8/strategy", "dst_strategy": "new/strategy"}


def planted_faults(folder):
    """Returns what each worker process runs at its start. The shares then follow plan.json, which has
    an action for "SHARE TRY"."""

    def set_up():
        import json
        import os
        import pathlib
        import signal
        import time

        import reshard

        convert = reshard._calls.convert

        def faulty(*values, shard, **keywords):
            tries = folder / f"tries_{shard[0]}"
            with tries.open("a") as file:
                file.write(".")
            plan = json.loads((folder / "plan.json").read_text())
            action = plan.get(f"{shard[0]} {tries.stat().st_size}")
            if action == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if action == "fail":
                raise reshard.IoError("planted")
            if action == "refuse":
                while not (folder / "tries_1").exists():
                    time.sleep(0.01)
                raise reshard.InvalidArgumentError("planted")
            if action == "stay":
                try:
                    while True:
                        time.sleep(0.01)
                finally:
                    (folder / f"cleared_{shard[0]}").touch()
            report = convert(*values, shard=shard, **keywords)
            if action == "die at the end":
                os.kill(os.getpid(), signal.SIGKILL)
            return report

        reshard._calls.convert = faulty

    return set_up


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The folder of plan.json, beside a Ray of two processors."""
    ray = pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("faults")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": planted_faults(folder)},
    )
    yield folder
    ray.shutdown()


@pytest.fixture
def run(samples, faults, tmp_path, monkeypatch):
    """Converts ckpt_8 to `out`, by paths that are relative to the driver's folder."""
    for name in ("ckpt_8", "new"):
        shutil.copytree(samples / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for file in faults.iterdir():
        file.unlink()

    def convert(plan=None, **keywords):
        (faults / "plan.json").write_text(json.dumps(plan or {}))
        keywords = {"workers": 2, "num_cpus": 1, **STRATEGIES, **keywords}
        return reshard.ray.convert("ckpt_8", "out", **keywords)

    return convert


def tries(faults):
    return {int(file.name[6:]): file.stat().st_size for file in faults.glob("tries_*")}


def content(folder):
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.name != "origin.jsonl"}


@pytest.fixture
def alone(run):
    """The report of one process, which writes `alone`."""
    return reshard.convert("ckpt_8", "alone", **STRATEGIES)


@pytest.mark.parametrize("workers", (2, 5))
def test_the_set_and_the_report_are_those_of_one_process(run, alone, faults, workers):
    seen = []
    report = run(workers=workers, progress=seen.append, report="page.html")
    assert content("out") == content("alone")
    assert tries(faults) == dict.fromkeys(range(workers), 1)
    assert type(report) is reshard.ConvertReport and report.published and report.shard is None
    same = ("files", "parameters", "largest", "source_ranks", "bytes_written", "warnings", "already_published")
    assert {name: getattr(report, name) for name in same} == {name: getattr(alone, name) for name in same}
    assert pathlib.Path(report.target) == pathlib.Path("out").absolute()
    assert pathlib.Path("page.html").read_text().startswith("<!")
    assert all(0 <= now.done <= now.total for now in seen)
    assert [now.done for now in seen] == sorted(now.done for now in seen)
    assert seen[-1].done == seen[-1].total >= report.bytes_written
    again = run(workers=workers)
    assert again.already_published and again.published and again.bytes_written == 0


def test_a_task_for_each_node_without_workers(run, faults):
    assert run(workers=None, num_cpus=None).published
    assert tries(faults) == {0: 1}
    with pytest.raises(reshard.InvalidArgumentError, match="no node has .*'moon': 1"):
        run(workers=None, resources={"moon": 1})
    with pytest.raises(reshard.InvalidArgumentError, match="workers: expected 1 or more, found 0"):
        run(workers=0)


def test_a_share_waits_for_the_lock_of_a_node_that_has_died(run, alone, faults):
    # As long as its file system has not noticed.
    reshard.convert("ckpt_8", "out", **STRATEGIES, shard=(1, 2))
    (job,) = pathlib.Path("out/.reshard").glob("*/job")
    with (job.parent / "shard_0_of_2").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def notice():
            while tries(faults).get(0, 0) < 2:
                time.sleep(0.01)
            fcntl.flock(lock, fcntl.LOCK_UN)

        noticing = threading.Thread(target=notice, daemon=True)
        noticing.start()
        assert run().published
        noticing.join(10)
    assert content("out") == content("alone")
    assert tries(faults)[0] >= 2 and tries(faults)[1] == 1


def test_outputs_of_another_conversion_end_all_shares_at_once(run, faults):
    pathlib.Path("out/rank_0").mkdir(parents=True)
    pathlib.Path("out/rank_0/checkpoint_0.ckpt").write_text("x")
    with pytest.raises(reshard.AlreadyExistsError):
        run()
    assert all(count == 1 for count in tries(faults).values())


@pytest.mark.parametrize("when", ("die", "die at the end"))
def test_the_share_of_a_killed_worker_is_done_again(run, alone, faults, when):
    # At the end of share 0 its files are finished; at the end of share 1 the set may be published.
    report = run({"0 1": when, "1 1": when}, workers=2)
    assert tries(faults) == {0: 2, 1: 2}
    assert report.published and content("out") == content("alone")


def test_a_share_whose_workers_all_die_ends_the_call(run, faults):
    ray = pytest.importorskip("ray")
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        run({"0 1": "die", "0 2": "die"}, max_retries=1)
    assert tries(faults)[0] == 2 and not pathlib.Path("out/manifest.json").exists()
    assert run().published


def test_input_and_output_errors_are_tried_again(run, faults):
    assert run({"0 1": "fail", "0 2": "fail"}, max_retries=2).published
    assert tries(faults) == {0: 3, 1: 1}


def test_other_errors_end_all_shares_at_once(run, faults):
    with pytest.raises(reshard.InvalidArgumentError, match="^planted$"):
        run({"0 1": "refuse", "1 1": "stay"})
    assert tries(faults) == {0: 1, 1: 1} and (faults / "cleared_1").exists()
    assert not pathlib.Path("out/manifest.json").exists()


def test_errors_of_the_library_are_those_of_one_process(run, faults):
    for keywords in ({"rank": 99}, {"src_strategy": "nowhere"}, {"dtype": "float99"}):
        with pytest.raises(reshard.Error) as expected:
            reshard.convert("ckpt_8", "out", **{**STRATEGIES, **keywords}, shard=(0, 2))
        with pytest.raises(type(expected.value)) as found:
            run(**keywords)
        words = str(found.value).replace(f"{pathlib.Path.cwd()}/", "")
        assert words == str(expected.value) and found.value.option == expected.value.option
    assert max(tries(faults).values()) == 3  # once for each call


@pytest.mark.parametrize("how", ("Ctrl-C", "cancel", "error"))
def test_what_ends_a_call_ends_its_tasks(run, faults, how):
    event = threading.Event()
    errors = {"Ctrl-C": KeyboardInterrupt, "cancel": reshard.CancelledError, "error": ZeroDivisionError}

    def progress(_):
        if len(tries(faults)) < 2:
            return
        event.set()
        if how != "cancel":
            raise errors[how]

    with pytest.raises(errors[how]):
        run({"0 1": "stay", "1 1": "stay"}, progress=progress, cancel=event if how == "cancel" else None)
    assert (faults / "cleared_0").exists() and (faults / "cleared_1").exists()
    assert tries(faults) == {0: 1, 1: 1} and not pathlib.Path("out/manifest.json").exists()
    assert run().published


def test_a_set_that_no_share_has_published_is_committed(run, tmp_path, monkeypatch):
    # Reports that name outstanding shares, as on a file system that shows processes old folders.
    outcome = reshard.ShardOutcome(1, 2, False, False, (0,))
    of_shares = reshard.ConvertReport.of_shares
    monkeypatch.setattr(
        reshard.ConvertReport, "of_shares", lambda reports: of_shares(reports).__replace__(shard=outcome)
    )

    def commit(target, wait):
        assert reshard.commit(target, wait=wait).already_published
        (tmp_path / "committed").touch()

    monkeypatch.setattr(reshard.ray, "_commit", commit)
    assert run().published and (tmp_path / "committed").exists()


def test_paths_are_those_of_the_driver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {
        "source": {0: "a", 1: pathlib.Path("/b")},
        "target": "s3://bucket/out",
        "src_strategy": pathlib.Path("s"),
        "group_info": ["g", "/h"],
        "rename": {"old": "new"},
        "companions": True,
        "names": "mindformers",
        "prefix": None,
    }
    assert reshard.ray._for_tasks(given) == {
        "source": {0: f"{tmp_path}/a", 1: "/b"},
        "target": "s3://bucket/out",
        "src_strategy": f"{tmp_path}/s",
        "group_info": [f"{tmp_path}/g", "/h"],
        "rename": {"old": "new"},
        "companions": True,
        "names": "mindformers",
    }


def test_shares_are_for_the_nodes_that_have_what_a_task_reserves():
    nodes = [
        {"Alive": True, "Resources": {"memory": 1}},
        {"Alive": True, "Resources": {"CPU": 8.0, "disk": 1}},
        {"Alive": False, "Resources": {"CPU": 8.0, "disk": 1}},
        {"Alive": True, "Resources": {"CPU": 3.0, "disk": 2}},
    ]
    ray = types.SimpleNamespace(nodes=lambda: nodes)
    found = reshard.ray._nodes(ray, {"CPU": 1})
    assert found == [nodes[1]["Resources"], nodes[3]["Resources"]]
    assert reshard.ray._nodes(ray, {"CPU": 1, "disk": 2}) == found[1:]
    assert reshard.ray._nodes(ray, {"CPU": 4}) == found[:1]
    assert [reshard.ray._processors(jobs, found) for jobs in (None, 0, 1, 6)] == [3, 3, 1, 6]
    assert [reshard.ray._processors(None, some) for some in (found[:1], [])] == [4, 4]


def test_the_progress_of_all_shares_follows_from_some():
    write = reshard.Progress("write", 10, 40, 1, 2, 0.1)
    check = reshard.Progress("check", 2, 44, 0, 2, 0.1)
    end = reshard.Progress("publish", 40, 40, 2, 2, 0.2)
    together = reshard.ray._together
    assert together({}, 4) == ("plan", 0, 0, 0, 0)
    assert together({2: write}, 4) == ("write", 10, 160, 1, 8)
    assert together({0: write, 3: check}, 4) == ("check", 12, 168, 1, 8)
    assert together({0: end}, 2) == ("write", 40, 80, 2, 4)
    assert together({0: end, 1: end}, 2) == ("publish", 80, 80, 4, 4)


def test_the_program_of_the_page(samples, faults, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    shutil.copytree(samples / "ckpt_8", tmp_path / "ckpt_8")
    shown_programs.run(shown_programs.shown("cluster.md", "ray"), tmp_path)
    assert reshard.verify(tmp_path / "by_ray").ok


def test_without_ray_the_error_says_how_to_install_it():
    code = "import sys; sys.modules['ray'] = None\nimport reshard; reshard.ray.convert('a', 'b')"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: reshard.ray needs Ray: pip install reshard[ray]\n")
