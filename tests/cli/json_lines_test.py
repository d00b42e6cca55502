#!/usr/bin/env python3
"""What --json-lines and --log-file leave for programs and for later, whatever becomes of the run.

Usage: json_lines_test.py --reshard BIN --gen BIN
"""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

RESHARD = GEN = None
STATUS = {"schema_version", "command", "message_type", "phase", "percent_done", "bytes_done",
          "total_bytes", "files_done", "total_files", "seconds_elapsed", "seconds_remaining"}
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [^\x00-\x1f\x7f-\x9f]+$")


class JsonLinesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="reshard-json-lines-")
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

    def run_reshard(self, *arguments):
        return subprocess.run([RESHARD, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120)

    def lines(self, output):
        """Returns the objects of the lines, which have what all have in common."""
        self.assertTrue(output.isascii())
        self.assertTrue(output.endswith(b"\n"))
        found = [json.loads(line) for line in output.splitlines()]
        for line in found:
            self.assertEqual(list(line)[:3], ["schema_version", "command", "message_type"])
            self.assertEqual(line["schema_version"], 2)
            if line["message_type"] == "status":
                self.assertEqual(set(line), STATUS)
                self.assertLessEqual(line["bytes_done"], line["total_bytes"])
                self.assertLessEqual(line["files_done"], line["total_files"])
                self.assertTrue(0 <= line["percent_done"] <= 100)
        return found

    def test_the_summary_has_the_fields_of_json(self):
        strategy = ("--src-strategy", "small/strategy")
        for name, arguments in (
            ("plan", ("plan", "small", "new", *strategy)),
            ("convert", ("convert", "small", "full", "--force", *strategy)),
            ("verify", ("verify", "full")),
            ("verify", ("verify", "full", "--against", "small", *strategy)),
            ("merge", ("merge", "small/rank_0/llama-1_100.ckpt", "small/rank_1/llama-1_100.ckpt",
                       "merged.ckpt", "--force", "--strategy", "small/strategy")),
            ("recode", ("recode", "small", "recoded", "--format", "safetensors", "--force")),
            ("digest", ("digest", "small", "--strategy", "small/strategy")),
            ("diff", ("diff", "small", "full", "--a-strategy", "small/strategy")),
        ):
            with self.subTest(arguments):
                document = json.loads(self.run_reshard(*arguments, "--json").stdout)
                done = self.run_reshard(*arguments, "--json-lines")
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = self.lines(done.stdout)
                self.assertEqual({line["command"] for line in lines}, {name})
                self.assertEqual([line["message_type"] for line in lines[:-1]],
                                 ["status"] * (len(lines) - 1))
                self.assertGreaterEqual(len(lines), 2)
                self.assertEqual(lines[-1].pop("message_type"), "summary")
                self.assertEqual(set(lines[-1]), set(document))
                quiet = self.lines(self.run_reshard(*arguments, "--json-lines", "-q").stdout)
                self.assertEqual([line["message_type"] for line in quiet], ["summary"])

    def test_phases_come_in_order(self):
        done = self.run_reshard("convert", "small", "phases", "--src-strategy", "small/strategy",
                                "--json-lines", "--check-replicas")
        lines = [line for line in self.lines(done.stdout) if line["message_type"] == "status"]
        self.assertEqual([line["phase"] for line in lines], ["plan", "check", "write", "publish"])
        self.assertEqual([line["files_done"] for line in lines], [0, 0, 0, 1])
        self.assertEqual(lines[0]["percent_done"], 0)
        self.assertEqual(lines[-1]["percent_done"], 100)
        done = self.run_reshard("verify", "phases", "--json-lines")
        self.assertEqual(self.lines(done.stdout)[0]["phase"], "read")

    def test_commands_without_progress_have_a_summary(self):
        self.run_reshard("convert", "small", "whole", "--src-strategy", "small/strategy")
        self.run_reshard("convert", "small", "shards", "--src-strategy", "small/strategy",
                         "--shard", "0/1")
        for arguments in (
            ("report", "small", "-o", "report.html", "--force"),
            ("strategy", "infer", "small", "inferred.json", "--reference",
             "whole/rank_0/checkpoint_0.ckpt", "--force"),
            ("commit", "shards"),
        ):
            with self.subTest(arguments):
                done = self.run_reshard(*arguments, "--json-lines", "-q")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.lines(done.stdout)[-1]["message_type"], "summary")

    def test_inspect_has_a_line_for_each_checkpoint(self):
        document = json.loads(self.run_reshard("inspect", "small", "nowhere", "--json").stdout)
        done = self.run_reshard("inspect", "small", "nowhere", "--json-lines")
        self.assertEqual(done.returncode, 3)
        lines = self.lines(done.stdout)
        self.assertEqual([line["message_type"] for line in lines],
                         ["checkpoint", "checkpoint", "error", "summary"])
        for line, checkpoint in zip(lines, document["checkpoints"]):
            self.assertEqual({**line, **checkpoint}, line)
        self.assertEqual({**lines[-1], "checkpoints": document["checkpoints"]},
                         {**document, "message_type": "summary"})

    def test_differences_are_in_the_summary(self):
        self.run_reshard("convert", "small", "damaged", "--src-strategy", "small/strategy")
        (self.folder / "damaged" / "rank_0" / "checkpoint_0.ckpt").unlink()
        done = self.run_reshard("verify", "damaged", "--json-lines")
        self.assertEqual(done.returncode, 1)
        summary = self.lines(done.stdout)[-1]
        self.assertEqual((summary["message_type"], summary["equal"]), ("summary", False))

    def test_an_error_is_the_last_line(self):
        hostile = "no\n\x1b[2J\u00e9\u2028\udcff"  # the last is a byte that is no UTF-8
        for code, exit_code, arguments in (
            ("not found", 3, ("convert", hostile, "new", "--src-strategy", "small/strategy")),
            ("not found", 3, ("verify", hostile)),
            ("not found", 3, ("verify", "small", "--against", hostile, "--src-strategy", "small/strategy")),
            ("invalid argument", 2, ("convert", "small")),
            ("invalid argument", 2, ("convert", "small", "new", "--jobs", hostile)),
            ("invalid argument", 2, ("verify", "small", "--no-such-option")),
            ("I/O error", 4, ("verify", "small", "--log-file", "small")),
        ):
            with self.subTest(arguments):
                done = self.run_reshard(*arguments, "--json-lines")
                self.assertEqual(done.returncode, exit_code)
                error = self.lines(done.stdout)[-1]
                self.assertEqual(error["message_type"], "error")
                self.assertEqual((error["code"], error["exit_code"]), (code, exit_code))
                self.assertEqual(error["command"], arguments[0])
                self.assertTrue(error["message"])
                self.assertIn(b"reshard: error: " + code.encode(), done.stderr)

    def test_warnings_are_lines(self):
        self.run_reshard("convert", "small", "bare", "--src-strategy", "small/strategy",
                         "--no-checksum")
        done = self.run_reshard("verify", "bare", "--json-lines", "-q")
        self.assertEqual(done.returncode, 0)
        warning, summary = self.lines(done.stdout)
        self.assertEqual(warning["message_type"], "warning")
        self.assertEqual(warning["code"], "not compared")
        self.assertEqual([{"code": warning["code"], "message": warning["message"]}],
                         summary["warnings"])

    def test_status_comes_while_it_runs_and_a_stop_is_an_error(self):
        process = subprocess.Popen([RESHARD, "convert", "large", "stopped", "--src-strategy",
                                    "large/strategy", "--json-lines", "--log-file", "stopped.log"],
                                   cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        output = process.stdout.readline()
        self.assertEqual(json.loads(output)["message_type"], "status")
        process.send_signal(signal.SIGINT)
        output += process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 130)
        error = self.lines(output)[-1]
        self.assertEqual((error["message_type"], error["code"], error["exit_code"]),
                         ("error", "cancelled", 130))
        log = (self.folder / "stopped.log").read_bytes()
        self.assertIn(f"Z reshard: error: cancelled: {error['message']}\n".encode(), log)

    def test_the_log_has_what_standard_error_got(self):
        log = self.folder / "run.log"
        said = b""
        for arguments in (("convert", "small", "logged", "--src-strategy", "small/strategy", "-v"),
                          ("inspect", "no\n\x1b[2J\\\u00e9"),
                          ("convert", "small", "logged", "--src-strategy", "small/strategy",
                           "--prefix", "other"),
                          ("digest", "logged")):
            said += self.run_reshard(*arguments, "--log-file", "run.log").stderr
        lines = log.read_bytes().splitlines()
        for line in lines:
            self.assertRegex(line.decode(), LOG_LINE)
        self.assertEqual([line[25:] for line in lines], said.splitlines())
        self.assertEqual(lines, sorted(lines, key=lambda line: line[:24]))
        self.assertTrue(any(b"error: already exists" in line for line in lines))

    def test_a_log_that_cannot_be_written_stops_everything(self):
        for path in ("", "nowhere/run.log", "small"):
            with self.subTest(path):
                done = self.run_reshard("convert", "small", "unlogged", "--src-strategy",
                                        "small/strategy", "--log-file", path)
                self.assertEqual(done.returncode, 4)
                self.assertIn(b"--log-file", done.stderr)
                self.assertFalse((self.folder / "unlogged").exists())
        full = self.run_reshard("verify", "small", "--log-file", "/dev/full")
        self.assertEqual(full.returncode, 3)  # the first error counts
        self.assertIn(b"--log-file /dev/full: not all", full.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    known, rest = parser.parse_known_args()
    RESHARD, GEN = (str(pathlib.Path(program).resolve()) for program in (known.reshard, known.gen))
    unittest.main(argv=[sys.argv[0], *rest])
