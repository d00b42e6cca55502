#!/usr/bin/env python3
"""The scripts of docs/examples for Slurm and Kubernetes do what they say.

Slurm's srun is a stand-in that starts the tasks one after the other with its variables (tests/fault
has a real Slurm); of the Kubernetes jobs the commands are run, each pod's with its index.
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
SRUN = """#!/bin/sh
tasks=1
for option in "$@"; do
  case $option in
    --ntasks=*) tasks=${option#--ntasks=}; shift ;;
    --*) shift ;;
    *) break ;;
  esac
done
task=0
while [ "$task" -lt "$tasks" ]; do
  SLURM_STEP_ID=0 SLURM_PROCID=$task SLURM_NTASKS=$tasks "$@" || exit
  task=$((task + 1))
done
"""


def generate(gen, folder, *options):
    subprocess.run([gen, folder, "--layers", "1", "--hidden", "64", "--ffn", "128", "--vocab", "256",
                    *options], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def run(command, environment, expected=0):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == expected, f"{command}: exit {done.returncode}: {done.stderr}"
    return done.stdout + done.stderr


def check_slurm(folder, path):
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    script = EXAMPLES / "slurm_convert_then_train.sh"
    where = {"SRC": folder / "ckpt_8", "DST": folder / "of slurm",
             "SRC_STRATEGY": folder / "strategy_8", "DST_STRATEGY": folder / "strategy_4"}
    environment = {**{name: str(value) for name, value in where.items()},
                   "SLURM_JOB_NUM_NODES": "3", "PATH": f"{srun.parent}:{path}"}
    said = run([script, "sh", "-c", "echo trained on $SLURM_NTASKS"], environment)
    assert re.search("share 2/3: .*; all shares have finished; the set is published", said), said
    assert said.index("trained on 1") >= 0
    said = run([script, "false"], environment, expected=1)
    assert "nothing to do: the set is already published" in said, said
    del environment["DST"]
    run([script, "true"], environment, expected=2)
    return where["DST"]


def check_kubernetes(folder, path):
    text = (EXAMPLES / "kubernetes_convert_then_train.yaml").read_text()
    assert "\t" not in text
    convert, training = text.split("---\n")
    [pods] = re.findall(r"completions: (\d+)", convert)
    assert f"parallelism: {pods}\n" in convert
    assert f'JOB_COMPLETIONS, value: "{pods}"' in convert
    command = [word.strip('"') for word in
               re.search(r"command: \[([^]]*)\]", convert)[1].replace("\n", "").replace(" ", "")
               .split(",")]
    command = [word.replace("/data", str(folder)) for word in command]
    [script] = re.findall(r'command: \[sh, -c, "(.*)"\]', training)
    script = script.replace("/data", str(folder))
    environment = {"PATH": path, "JOB_COMPLETIONS": pods}
    for pod in range(int(pods)):
        # The training waits until the last pod has ended.
        assert subprocess.run(["timeout", "0.2", "sh", "-c", script], check=False).returncode == 124
        run(command, {**environment, "JOB_COMPLETION_INDEX": str(pod)})
    run(["timeout", "5", "sh", "-c", script], environment)
    return folder / "ckpt_4"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", required=True, type=pathlib.Path)
    parser.add_argument("--gen", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    path = f"{arguments.reshard.resolve().parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for ranks, more in ((8, ()), (4, ("--strategy-only",))):
            generate(arguments.gen, folder / f"ckpt_{ranks}", "--tp", str(ranks), *more)
            (folder / f"ckpt_{ranks}" / "strategy").rename(folder / f"strategy_{ranks}")
        (folder / "ckpt_4").rmdir()
        made = [check_slurm(folder, path), check_kubernetes(folder, path)]
        for target in made:
            run([arguments.reshard, "verify", target, "--against", folder / "ckpt_8",
                 "--src-strategy", folder / "strategy_8", "--dst-strategy", folder / "strategy_4"],
                {})


main()
