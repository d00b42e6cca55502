#!/usr/bin/env python3
"""What the command line does on a terminal and on signals.

Usage: terminal_test.py --reshard BIN --gen BIN
"""

import argparse
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PROGRESS = re.compile(rb"\rreshard: (?:check|write|publish) \d+%, [\d.]+ \w+ of [\d.]+ \w+[^\r]*\x1b\[K")
ERASE = b"\r\x1b[K"
RESHARD = GEN = None


def run_on_terminal(arguments, folder, on_output=None, columns=0, data_too=False, **variables):
    """Runs reshard with standard error on a terminal, and with `data_too` standard output; returns the exit code and
    all that was written there, and elsewhere.

    `on_output` is called with the process and the output so far, whenever there is more of it.
    """
    leader, follower = pty.openpty()
    if columns:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", **variables}
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    process = subprocess.Popen([RESHARD, *arguments], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stderr=follower,
                               stdout=follower if data_too else subprocess.PIPE)
    os.close(follower)
    output = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # the other side is closed
            break
        output += piece
        if on_output:
            on_output(process, output)
    os.close(leader)
    data = b""
    if process.stdout:
        data = process.stdout.read()
        process.stdout.close()
    return process.wait(), output, data


class TerminalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="reshard-terminal-")
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.make("small", "--layers", "1", "--hidden", "64", "--ffn", "128", "--vocab", "64")
        # 3 GB without a byte on the disk: long enough to be stopped long before its end.
        cls.make("large", "--sparse", "--no-optimizer", "--layers", "2", "--hidden", "4096",
                 "--ffn", "16384", "--vocab", "32768", "--dtype", "Float32")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def make(cls, name, *options):
        subprocess.run([GEN, name, "--tp", "2", *options], cwd=cls.folder, check=True,
                       stderr=subprocess.DEVNULL)

    def convert(self, source, target, *options, **more):
        arguments = ["convert", source, target, "--src-strategy", f"{source}/strategy", *options]
        return run_on_terminal(arguments, self.folder, **more)

    def test_progress_line_is_shown_and_cleared(self):
        code, output, data = self.convert("small", "shown")
        self.assertEqual(code, 0)
        self.assertRegex(output, PROGRESS)
        progress, summary = output.rsplit(ERASE, 1)
        self.assertNotIn(b"\n", progress)
        self.assertTrue(summary.startswith(b"reshard: note: small/strategy: no matrix"), summary)
        self.assertIn(b"\r\nreshard: 1 file, ", summary)
        self.assertNotIn(b"\r\x1b", summary)
        self.assertEqual(data, b"")

    def test_progress_fits_the_terminal(self):
        for columns in (12, 40, 80):
            with self.subTest(columns):
                code, output, _ = self.convert("small", f"wide{columns}", columns=columns)
                self.assertEqual(code, 0)
                lines = [piece.split(b"\x1b")[0] for piece in output.split(b"\r")]
                lines = [line for line in lines if re.match(rb"reshard: (plan|write|publish)", line)]
                self.assertEqual(lines[0], b"reshard: plan")
                self.assertTrue(lines[-1].startswith(b"reshard: publish"), lines)
                self.assertEqual(b"100%" in lines[-1], columns >= 40)
                self.assertEqual(b"1 of 1 file" in lines[-1], columns == 80)
                if columns >= 40:
                    self.assertLess(max(map(len, lines)), columns)

    def test_progress_comes_at_most_ten_times_a_second(self):
        seen = []

        def stop_after_some(process, output):
            seen[:] = PROGRESS.findall(output)
            if len(seen) >= 6:
                process.send_signal(signal.SIGINT)

        before = time.monotonic()
        self.convert("large", "rate", on_output=stop_after_some)
        elapsed = time.monotonic() - before
        self.assertGreaterEqual(len(seen), 6)
        self.assertLessEqual(len(seen), 10 * elapsed + 3)  # and where phases begin
        self.assertRegex(seen[-1], rb", [\d.]+ \w+/s, \d+:\d\d left")

    def test_digests_of_many_fit_a_screen(self):
        self.make("many", "--layers", "6", "--hidden", "8", "--ffn", "8", "--vocab", "8")
        digest = ["digest", "many", "--strategy", "many/strategy", "-q"]
        _, _, piped = run_on_terminal(digest, self.folder)
        _, _, document = run_on_terminal([*digest, "--json"], self.folder)
        lines = len(piped.splitlines())
        self.assertGreater(lines, 41)
        _, shown, _ = run_on_terminal(digest, self.folder, data_too=True)
        self.assertLess(len(shown.splitlines()), 10)
        self.assertIn(json.loads(document)["digest"].encode(), shown)
        for all_of_them in (["--long"], ["--include", "*.wq.*"]):
            _, _, expected = run_on_terminal([*digest, *all_of_them], self.folder)
            _, shown, _ = run_on_terminal([*digest, *all_of_them], self.folder, data_too=True)
            self.assertEqual(shown.splitlines()[-3:], expected.splitlines()[-3:])
            self.assertEqual(shown.count(b"\n"), expected.count(b"\n"))

    def test_differences_of_many_fit_a_screen(self):
        self.make("more", "--layers", "12", "--hidden", "8", "--ffn", "8", "--vocab", "8")
        self.convert("more", "half", "--dtype", "*=float16", "-q")
        diff = ["diff", "more", "half", "--a-strategy", "more/strategy", "-q"]
        _, _, piped = run_on_terminal(diff, self.folder)
        self.assertGreater(len(piped.splitlines()), 100)
        _, shown, _ = run_on_terminal(diff, self.folder, data_too=True)
        self.assertLess(len(shown.splitlines()), 41)
        self.assertIn(b"model.layers.*.attention.wq.weight x 12", shown)
        self.assertIn(b"--long lists all", shown)
        _, shown, _ = run_on_terminal([*diff, "--long"], self.folder, data_too=True)
        self.assertEqual(shown.count(b"\n"), piped.count(b"\n"))

    def test_a_file_of_many_fits_a_screen(self):
        self.make("file", "--layers", "12", "--hidden", "8", "--ffn", "8", "--vocab", "8")
        inspect = ["inspect", "file/rank_0/llama-1_100.ckpt"]
        _, _, piped = run_on_terminal(inspect, self.folder)
        self.assertGreater(len(piped.splitlines()), 300)
        _, shown, _ = run_on_terminal(inspect, self.folder, data_too=True)
        self.assertLess(len(shown.splitlines()), 41)
        self.assertIn(b"layers.* x 12", shown)
        self.assertIn(b"--long lists all", shown)
        for all_of_them in (["--long"], ["-v"], ["--include", "*.wq.*"]):
            _, _, expected = run_on_terminal([*inspect, *all_of_them], self.folder)
            _, shown, _ = run_on_terminal([*inspect, *all_of_them], self.folder, data_too=True)
            self.assertEqual(shown.count(b"\n"), expected.count(b"\n"))

    def test_no_progress_where_none_is_wanted(self):
        for name, options, variables in (("quiet", ["-q"], {}), ("dumb", [], {"TERM": "dumb"})):
            with self.subTest(name):
                code, output, _ = self.convert("small", name, *options, **variables)
                self.assertEqual(code, 0)
                self.assertNotIn(b"\x1b", output)
                self.assertNotRegex(output, PROGRESS)

    def test_colour_only_where_it_is_wanted(self):
        for variables, label in (({}, b"reshard: \x1b[1;31merror:\x1b[0m "),
                                 ({"NO_COLOR": "1"}, b"reshard: error: "),
                                 ({"NO_COLOR": ""}, b"reshard: \x1b[1;31merror:\x1b[0m "),
                                 ({"TERM": "dumb"}, b"reshard: error: ")):
            with self.subTest(variables):
                code, output, _ = run_on_terminal(["inspect", "nowhere"], self.folder, **variables)
                self.assertEqual(code, 3)
                self.assertTrue(output.startswith(label), output)

    def test_signals_stop_and_leave_nothing_that_looks_finished(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                target = f"stopped-{number.name}"
                sent = []  # only the first is a request; a second would end the process at once

                def stop(process, output, number=number, sent=sent):
                    if not sent and PROGRESS.search(output):
                        sent.append(process.send_signal(number))

                code, output, _ = self.convert("large", target, on_output=stop)
                self.assertEqual(code, 130)
                self.assertIn(b"cancelled: ", output)
                self.assertLess(output.rindex(ERASE), output.index(b"cancelled: "))
                left = [path for path in (self.folder / target).glob("*") if path.name != ".reshard"]
                self.assertEqual([path for path in left if list(path.rglob("*"))], [])

    def test_ignored_interrupt_stays_ignored(self):
        sent_at = []  # how many progress lines there were when each signal was sent

        def interrupt_then_terminate(process, output):
            lines = len(PROGRESS.findall(output))
            if lines and not sent_at:
                process.send_signal(signal.SIGINT)
                sent_at.append(lines)
            elif len(sent_at) == 1 and lines >= sent_at[0] + 3:
                process.send_signal(signal.SIGTERM)
                sent_at.append(lines)

        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a child inherits it
        try:
            code, _, _ = self.convert("large", "ignored", on_output=interrupt_then_terminate)
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(code, 130)
        self.assertEqual(len(sent_at), 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    known, rest = parser.parse_known_args()
    RESHARD, GEN = (str(pathlib.Path(program).resolve()) for program in (known.reshard, known.gen))
    unittest.main(argv=[sys.argv[0], *rest])
