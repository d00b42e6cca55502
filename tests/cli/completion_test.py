#!/usr/bin/env python3
"""Completion in real shells, and the man page: that each offers what --help lists.

Usage: completion_test.py --reshard BIN --gen BIN

A shell that is not installed is named by `did not run: completion: ...`.
"""

import argparse
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

RESHARD = None
OPTION = re.compile(r"^  ((?:-\w,)?--[\w-]+(?:,--[\w-]+)*|-\w)", re.MULTILINE)


def output_of(*arguments):
    return subprocess.run([RESHARD, *arguments], check=True, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True).stdout


def subcommands(*command):
    """Returns the words that --help lists below `Commands:`."""
    _, _, listed = output_of(*command, "--help").partition("\nCommands:\n")
    return re.findall(r"^  (\w[\w-]*)", listed, re.MULTILINE)


def commands():
    """Returns all commands, as lists of words."""
    found = []
    for word in subcommands():
        children = subcommands(word)
        found += [[word, child] for child in children] or [[word]]
    return found


def options(command):
    names = set()
    for group in OPTION.findall(output_of(*command, "--help")):
        names.update(group.split(","))
    return names


class Terminal:
    """An interactive shell that thinks that a person types."""

    def __init__(self, command, folder, environment):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", 500, 500, 0, 0))
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=follower,
                                        stdout=follower, stderr=follower, start_new_session=True)
        os.close(follower)
        self.seen = ""

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.leader)

    def type(self, text):
        os.write(self.leader, text.encode())

    def wait_for(self, pattern):
        """Returns the match of what the shell prints from now on; the rest is left for the next."""
        end = time.monotonic() + 60
        while not (found := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.leader], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.leader, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="reshard-completion-")
        cls.folder = pathlib.Path(cls.scratch.name)
        for shell, name in (("bash", "reshard.bash"), ("zsh", "_reshard"), ("fish", "reshard.fish")):
            (cls.folder / name).write_text(output_of("completion", shell))
        (cls.folder / "work" / "ckpt dir").mkdir(parents=True)
        (cls.folder / "work" / "strategy.ckpt").touch()
        cls.commands = commands()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def environment(self, **more):
        return {"PATH": f"{pathlib.Path(RESHARD).parent}:{os.environ['PATH']}", "TERM": "dumb",
                "LC_ALL": "C.UTF-8", "HOME": str(self.folder), **more}

    def need(self, shell):
        if shutil.which(shell) is None:
            print(f"\ndid not run: completion: {shell} is not installed (tools/deps.sh test)", flush=True)
            self.skipTest(f"no {shell}")

    # The same in a session of each shell: what is typed, and the line that it becomes.
    TYPED = (
        ("reshard insp", "reshard inspect "),
        ("reshard strategy sh", "reshard strategy show "),
        ("reshard convert --src-st", "reshard convert --src-strategy"),
        ("reshard convert --unmatched dr", "reshard convert --unmatched drop "),
        ("reshard convert --unmatched=er", "reshard convert --unmatched=error "),
        ("reshard convert a b --io pr", "reshard convert a b --io pread "),
        ("reshard convert a b --resume=", "reshard convert a b --resume=verify "),
        ("reshard plan --src-strategy str", "reshard plan --src-strategy strategy.ckpt "),
        ("reshard inspect str", "reshard inspect strategy.ckpt "),
        ("reshard inspect ck", r"reshard inspect ckpt\ dir/"),
        ("reshard convert --rank str", "reshard convert --rank str"),
        ("reshard completion f", "reshard completion fish "),
    )

    def check_typed(self, terminal):
        """`terminal` prints its line in <> at ^G, without what is left of it."""
        for typed, completed in self.TYPED:
            with self.subTest(typed):
                terminal.type(typed + "\t\x07")
                found = terminal.wait_for("<<(.*?)>>").group(1)
                # zsh adds the = of an option that takes a value.
                self.assertEqual(found.rstrip(" ="), completed.rstrip())

    def test_bash_session(self):
        terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], self.folder / "work",
                            self.environment(INPUTRC="/dev/null", PS1="$ "))
        self.addCleanup(terminal.close)
        terminal.type("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'\n"
                      f"source {self.folder}/reshard.bash\n"
                      "line() { printf '<%s>\\n' \"<$READLINE_LINE>\"; READLINE_LINE=; }\n"
                      "bind -x '\"\\C-g\": line'; printf '%s\\n' rea''dy\n")
        terminal.wait_for("ready")
        self.check_typed(terminal)

    def test_zsh_session(self):
        self.need("zsh")
        terminal = Terminal(["zsh", "-f", "-i"], self.folder / "work", self.environment(PS1="$ "))
        self.addCleanup(terminal.close)
        terminal.type(f"unsetopt zle_bracketed_paste prompt_sp; fpath=({self.folder} $fpath)\n"
                      "autoload -Uz compinit; compinit -u -D; setopt no_beep no_auto_list\n"
                      "line() { zle -I; print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N line\n"
                      "bindkey '^G' line; print rea''dy\n")
        terminal.wait_for("ready\r?\n")
        self.check_typed(terminal)

    def test_bash_offers_what_help_lists(self):
        """The function is called as bash would call it."""
        script = [f"source {self.folder}/reshard.bash", "compopt() { echo files; }",
                  "offer() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _reshard;"
                  " echo \"${COMPREPLY[*]}\"; }"]
        lists = [[], *self.commands]
        script += [f"offer reshard {' '.join(command)} -" for command in lists]
        done = subprocess.run(["bash", "--norc", "-c", "\n".join(script)], check=True, text=True,
                              capture_output=True)
        self.assertEqual(done.stderr, "")
        for command, offered in zip(lists, done.stdout.splitlines(), strict=True):
            found = {word for word in offered.split() if "=" not in word}
            self.assertEqual(found, options(command), command)
        self.assertNotIn("man", [command[0] for command in self.commands])  # hidden

    def test_zsh_offers_what_help_lists(self):
        self.need("zsh")
        script = ["compdef() {}", "_describe() { print -r -- ${(P)4} }",
                  "_arguments() { print -rl -- \"$@\"; return 1 }",
                  f"source {self.folder}/_reshard"]
        for command in [[], *self.commands]:
            script += [f"print -r -- '== {' '.join(command)}'", "_" + "_".join(["reshard", *command])]
        done = subprocess.run(["zsh", "-f", "-c", "\n".join(script)], text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        parts = done.stdout.split("== ")[1:]
        for command, part in zip([[], *self.commands], parts, strict=True):
            found = set(re.findall(r"^(?:\*|\(.*?\))(-[\w-]+)", part, re.MULTILINE))
            self.assertEqual(found, options(command), command)

    def test_fish(self):
        self.need("fish")

        def complete(line):
            return [row.split("\t")[0] for row in ask([line])[0]]

        def ask(lines):
            script = f"source {self.folder}/reshard.fish\n" + "".join(
                f"complete -C '{line}'; echo ==\n" for line in lines)
            done = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder / "work",
                                  env=self.environment(), text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [part.splitlines() for part in done.stdout.split("==\n")[:-1]]

        lists = [[], *self.commands]
        answers = ask([f"reshard {' '.join(command)} -".replace("  ", " ") for command in lists])
        answers_long = ask([f"reshard {' '.join(command)} --".replace("  ", " ") for command in lists])
        for command, short, long in zip(lists, answers, answers_long, strict=True):
            found = {row.split("\t")[0].rstrip("=") for row in short + long}
            self.assertEqual({name for name in found if "=" not in name}, options(command), command)
        for typed, completed in self.TYPED:
            with self.subTest(typed):
                last = completed.rstrip().split(" ", typed.count(" "))[-1].replace("\\ ", " ")
                # From version 4 on fish takes - for _, too.
                words = [word for word in complete(typed) if not word.endswith("=")
                         and (word == last or word.replace("_", "-") != last)]
                self.assertEqual(words, [] if typed == completed else [last])

    def test_man_page(self):
        page = self.folder / "reshard.1"
        page.write_text(output_of("man"))
        text = page.read_text().replace("\\-", "-")
        for command in self.commands:
            section = text.partition(f".SS reshard {' '.join(command)}\n")[2].partition(".SS ")[0]
            for name in options(command):
                self.assertIn(f"\\fB{name}\\fR", section, command)
        for command in (["man", "--warnings", "--local-file", str(page)],
                        ["mandoc", "-Tlint", "-Wwarning", str(page)]):
            with self.subTest(command[0]):
                self.need(command[0])
                done = subprocess.run(command, env=self.environment(MANPAGER="cat"), text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True)
                complaints = done.stderr + (done.stdout if command[0] == "mandoc" else "")
                # A date would make the page another one in each build.
                complaints = [line for line in complaints.splitlines() if "missing date" not in line]
                self.assertEqual(complaints, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", required=True)
    parser.add_argument("--gen", required=True)
    known, rest = parser.parse_known_args()
    RESHARD = str(pathlib.Path(known.reshard).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
