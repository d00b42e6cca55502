"""What the interpreter does around the package's calls: it ends while threads are at them, forks while
they read, and runs other interpreters."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import reshard

KEY = "0123456789abcdef"


@pytest.fixture(scope="module")
def folder(samples, full, tmp_path_factory):
    """A folder with checkpoints of all kinds; ckpt_8 and whole are those of `samples`."""
    made = tmp_path_factory.mktemp("kinds")
    assert full.exists()
    for name in ("ckpt_8", "whole", "new"):
        os.symlink(samples / name, made / name)
    (made / "key").write_text(KEY)
    reshard.convert(
        samples / "ckpt_8",
        made / "secret",
        src_strategy=samples / "ckpt_8" / "strategy",
        encrypt="AES-GCM",
        encrypt_key_file=made / "key",
    )
    return made


# What a daemon thread does again and again while the program ends, one for each function of the
# module that gives up the GIL or calls Python.
AT_WORK = {
    "read": "checkpoint[name][...]",
    "read many": "checkpoint.read(jobs=2)",
    "read watched": "checkpoint.read(jobs=2, progress=slow)",
    "shards": "checkpoint[name].shards, checkpoint[name].locate()",
    "map": "full[name].mapped[:1]",
    "open": "reshard.open('ckpt_8', 'ckpt_8/strategy')",
    "inspect": "reshard.inspect('ckpt_8', include='lm_head*')",
    "strategy": "reshard.read_strategy('ckpt_8/strategy')",
    "values": "reshard.inspect('whole/rank_0/checkpoint_0.ckpt', values=True, progress=slow)",
    "digest": "reshard.digest('ckpt_8', strategy='ckpt_8/strategy', progress=slow)",
    "convert": "reshard.convert('ckpt_8', target(), src_strategy='ckpt_8/strategy', progress=slow)",
    "report": "reshard.report('ckpt_8', target() + '.html', src_strategy='ckpt_8/strategy')",
    "ranks": "reshard.source_ranks(0, src_strategy='ckpt_8/strategy')",
    "dlpack": "np.from_dlpack(full['adam_m.lm_head.weight'])",
    "load": "ms.load_checkpoint('whole/rank_0/checkpoint_0.ckpt', framework='numpy')",
    "save": "ms.save_checkpoint({'w': np.ones(1000, 'f4')}, target() + '.ckpt')",
    "target": "reshard.target('ckpt_8', src_strategy='ckpt_8/strategy').open('rank_0/checkpoint_0.ckpt').read()",
    "encrypted": "reshard.open('secret', key_file='key')[name][...]",
}


@pytest.mark.parametrize("work", AT_WORK)
def test_a_program_ends_while_a_thread_is_at_a_call(work, folder, tmp_path):
    code = f"""
        import itertools, os, sys, threading, time, traceback
        import numpy as np, reshard
        import reshard.mindspore as ms
        checkpoint = reshard.open('ckpt_8', 'ckpt_8/strategy')
        full = reshard.open('whole/rank_0/checkpoint_0.ckpt')
        numbers = itertools.count()
        begun = threading.Semaphore(0)
        ending = []  # what threads raise from then on is Python's, which takes no work any more
        name = 'lm_head.weight'

        def target():
            return f'{tmp_path}/{{os.getpid()}}_{{next(numbers)}}'

        def slow(progress):
            end = time.monotonic() + .003
            while time.monotonic() < end:
                pass

        def run():
            try:
                while True:
                    {AT_WORK[work]}
                    begun.release()
            except BaseException:
                if not ending:
                    traceback.print_exc()
                    os._exit(1)

        for _ in range(3):
            threading.Thread(target=run, daemon=True).start()
        begun.acquire()
        ending.append(True)
        sys.exit(7)
    """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 7, done.stderr


def reading(checkpoint):
    """Begins to read in threads; returns how to stop them."""
    stop = threading.Event()

    def read():
        while not stop.is_set():
            for name in checkpoint:
                checkpoint[name][...]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()

    def end():
        stop.set()
        for thread in threads:
            thread.join()

    return end


def forked(work, seconds=60):
    """Runs `work` in a child that is forked now; fails if it raises or does not end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(1)
    until = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.005)


OPENED = {
    "mapped": {"path": "ckpt_8", "strategy": "ckpt_8/strategy"},
    "read": {"path": "ckpt_8", "strategy": "ckpt_8/strategy", "io": "pread"},
    "encrypted": {"path": "secret", "key_file": "key"},
}


@pytest.mark.parametrize("kind", OPENED)
def test_a_child_reads_what_threads_were_reading_when_it_was_forked(kind, folder, monkeypatch):
    monkeypatch.chdir(folder)
    checkpoint = reshard.open(**OPENED[kind])
    names = list(checkpoint)[:10]
    expected = {name: checkpoint[name][...].tobytes() for name in names}

    def located():
        pieces = checkpoint[names[0]].locate()
        return [piece._replace(path=os.path.abspath(piece.path)) for piece in pieces]

    pieces = located()

    def child():
        for name in names:
            assert checkpoint[name][...].tobytes() == expected[name]
        assert set(checkpoint.read(names)) == set(names)
        assert located() == pieces
        # One of its own, read by threads.
        again = reshard.open(**OPENED[kind])
        assert set(again.read(jobs=2)) == set(checkpoint)
        checkpoint.close()

    end = reading(checkpoint)
    try:
        for _ in range(15):
            forked(child)
    finally:
        end()
    assert checkpoint[names[0]][...].tobytes() == expected[names[0]]


def test_a_child_of_a_process_without_threads_keeps_what_was_opened(folder, monkeypatch):
    monkeypatch.chdir(folder)
    checkpoint = reshard.open("ckpt_8", "ckpt_8/strategy")
    checkpoint["lm_head.weight"][...]

    def child():
        kept = checkpoint._store.opened()
        assert kept is checkpoint._store._opened
        checkpoint["lm_head.weight"][...]

    opened = checkpoint._store._opened
    forked(child)
    assert checkpoint._store.opened() is opened


def test_a_child_calls_while_threads_of_its_parent_are_at_calls(folder, tmp_path):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            reshard.digest(folder / "ckpt_8", strategy=folder / "ckpt_8" / "strategy", jobs=2)
            reshard.inspect(folder / "whole", values=True)

    def child():
        reshard.convert(
            folder / "ckpt_8", tmp_path / str(os.getpid()), src_strategy=folder / "ckpt_8" / "strategy"
        )
        assert reshard.verify(tmp_path / str(os.getpid())).ok

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            forked(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_call_whose_callback_forks_goes_on_in_the_parent_alone(folder):
    checkpoint = reshard.open(folder / "ckpt_8", folder / "ckpt_8" / "strategy")
    parent = os.getpid()
    children = []

    def fork(progress):
        if not children:
            children.append(os.fork())

    try:
        read = checkpoint.read(progress=fork)
    except reshard.CancelledError as error:
        # The child, which opens the files anew.
        try:
            right = os.getpid() != parent and "forked" in str(error)
            right = right and checkpoint["lm_head.weight"][...].shape == (256, 64)
        finally:
            os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert set(read) == set(checkpoint)


def test_a_child_uses_what_a_thread_was_importing_when_it_was_forked(folder):
    code = f"""
        import os, sys, threading, time
        import reshard
        checkpoint = reshard.open({str(folder / "ckpt_8")!r}, {str(folder / "ckpt_8" / "strategy")!r})
        begun = threading.Event()

        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "ml_dtypes":
                    begun.set()
                    time.sleep(.3)

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=lambda: checkpoint["lm_head.weight"].dtype)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            import signal
            signal.alarm(60)
            checkpoint["lm_head.weight"].dtype
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_an_array_outlives_a_dlpack_consumer_in_another_thread(folder):
    full = reshard.open(folder / "whole" / "rank_0" / "checkpoint_0.ckpt")
    arrays = [np.from_dlpack(full["adam_m.lm_head.weight"])]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert not arrays


def test_another_interpreter_is_refused_and_harms_nobody(full):
    code = f"""
        import reshard
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        other = interpreters.create()
        try:
            failed = interpreters.run_string(other, "import reshard")
        except Exception as error:
            failed = error
        print(failed)
        interpreters.destroy(other)
        checkpoint = reshard.open({str(full)!r})
        checkpoint.read()
        try:
            reshard.open("nowhere")
        except reshard.NotFoundError:
            print("found nothing")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    refused, nothing = done.stdout.splitlines()[-2:]
    assert "interpreter" in refused and nothing == "found nothing"
