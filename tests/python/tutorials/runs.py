"""The scripts of this folder: what each starts from, and how it is called. MindSpore's tutorials
make the same calls in the same way."""

import dataclasses
import json
import pathlib
import shutil
import sys

import numpy as np

SCRIPTS = pathlib.Path(__file__).parent
TESTS = SCRIPTS.parents[1]
GOLDEN = TESTS / "golden" / "data" / "convert"
sys.path.insert(0, str(TESTS / "differential"))

from layouts import Layout, shard  # noqa: E402
from writers import strategy_protobuf, write_checkpoint  # noqa: E402

RANKS = 4
FOLDERS = ["--src_checkpoints_dir=src_checkpoints", "--dst_checkpoints_dir=dst_checkpoints"]
STRATEGIES = ["--src_strategy_file=src_strategy.ckpt", "--dst_strategy_file=dst_strategy.ckpt"]


@dataclasses.dataclass
class Run:
    """One script. golden: the case that it converts, whose outputs `expected` are; calls: arguments
    of each call of it; ranks: whether each call is that of a rank; net: whether it has nets."""

    script: str
    calls: list
    golden: str = ""
    ranks: bool = False
    out: str = "dst_checkpoints/rank_{0}/checkpoint_{0}.ckpt"
    net: bool = False

    def prepare(self, folder):
        """Makes the files that the script starts from."""
        if self.golden:
            _lay_out(GOLDEN / self.golden, folder)
        else:
            _write_slices(folder)
            _write_net(folder)

    def commands(self, python):
        """(command, additions to the environment) of each call, after one another."""
        for number, arguments in enumerate(self.calls):
            rank = {"RANK_ID": str(number), "RANK_SIZE": str(len(self.calls))}
            yield [*python, str(SCRIPTS / self.script), *arguments], rank if self.ranks else {}

    def expected(self):
        """(path that the script writes, file with the same bytes) of each target rank."""
        case = json.loads((GOLDEN / self.golden / "case.json").read_text())
        for file in sorted((GOLDEN / self.golden / "expected").glob("rank_*/*.ckpt")):
            rank = file.parent.name.removeprefix("rank_")
            assert file.name == f"{case['prefix']}{rank}.ckpt"
            yield self.out.format(rank), file


def _lay_out(golden, folder):
    for rank in (golden / "src").iterdir():
        (folder / "src_checkpoints" / rank.name).mkdir(parents=True)
        [file] = rank.iterdir()
        number = rank.name.removeprefix("rank_")
        shutil.copy(file, folder / "src_checkpoints" / rank.name / f"checkpoint_{number}.ckpt")
    for rank in (golden / "expected").iterdir():
        # MindSpore's function for one rank wants the folder.
        (folder / "dst_checkpoints" / rank.name).mkdir(parents=True)
    stages = golden / "src_stages"
    for file in golden.glob("*_strategy.ckpt"):
        # That of a pipeline the script makes.
        if file.name == "dst_strategy.ckpt" or not stages.exists():
            shutil.copy(file, folder)
    if stages.exists():
        (folder / "src_strategies").mkdir()
        for number, file in enumerate(sorted(stages.iterdir())):
            shutil.copy(file, folder / "src_strategies" / f"src_strategy_{number}.ckpt")


def whole_slices():
    """The tensors of which _write_slices() writes the parts, by name."""
    values = np.arange(8 * 8, dtype=np.float32).reshape(8, 8)
    return {"weight": values, "moments.weight": -values}


def _write_slices(folder):
    layout = Layout((RANKS, 1), (1, -1))
    whole = whole_slices()
    for rank in range(RANKS):
        rows = [(name, "Float32", [2, 8], shard(tensor, layout, rank).tobytes())
                for name, tensor in whole.items()]
        write_checkpoint(folder / f"node{rank}" / "CKP_1-4_32.ckpt", rows)
    write_checkpoint(folder / "whole.ckpt", [(name, "Float32", [8, 8], tensor.tobytes())
                                             for name, tensor in whole.items()])
    (folder / "strategy_train.ckpt").write_bytes(
        strategy_protobuf([("MatMul-op0", 0, ((RANKS, 1),))], dict.fromkeys(whole, layout), {}))


def _write_net(folder):
    shapes = {"layer1.weight": (6, 4), "layer1.bias": (4,), "layer2.weight": (4, 2),
              "layer2.bias": (2,)}
    rows = [(name, "Float32", shape,
             (np.arange(np.prod(shape), dtype=np.float32) + number).tobytes())
            for number, (name, shape) in enumerate(shapes.items())]
    write_checkpoint(folder / "net.ckpt", rows)
    for part in range(2):
        write_checkpoint(folder / "parts" / f"net_part{part}.ckpt", rows[part::2])


RUNS = (
    Run("convert_folder.py", [FOLDERS + STRATEGIES], "case_025"),
    Run("convert_folder.py", [FOLDERS + STRATEGIES[:1]], "case_028"),
    # Full tensors, as integrated_save=True has them, to ranks; ranks to a pipeline.
    Run("convert_folder.py", [FOLDERS + STRATEGIES[1:]], "case_008"),
    Run("convert_folder.py", [FOLDERS + STRATEGIES], "case_017"),
    # Trained on 4 cards, to infer on 2: the target strategy has no optimizer states.
    Run("convert_folder.py", [FOLDERS + STRATEGIES], "infer_000"),
    Run("convert_rank.py", [FOLDERS + STRATEGIES] * 4, "case_006", ranks=True),
    Run("convert_all_ranks.py",
        [["src_checkpoints", "4", "src_strategy.ckpt", "dst_strategy.ckpt"]], "case_044",
        out="src_checkpoints/rank_{0}/dst_checkpoint{0}.ckpt"),
    Run("convert_pipeline.py", [FOLDERS + STRATEGIES + ["--src_strategy_dir=src_strategies"]],
        "case_012"),
    Run("convert_pipeline.py", [FOLDERS + STRATEGIES + ["--src_strategy_dir=src_strategies"]],
        "case_000"),
    Run("convert_stages.py",
        [["src_checkpoints", "dst_checkpoints", "dst_strategy.ckpt",
          "src_strategies/src_strategy_0.ckpt", "src_strategies/src_strategy_1.ckpt"]],
        "case_013"),
    Run("merge_slices.py", [["CKP_1-4_32.ckpt", "made.ckpt", "strategy_train.ckpt", "4"]]),
    Run("load_slices.py", [["whole.ckpt", f"made_{rank}.ckpt", "4"] for rank in range(RANKS)],
        ranks=True),
    Run("merge_net_slices.py", [["CKP_1-4_32.ckpt", "made.ckpt", "strategy_train.ckpt", "4"]],
        net=True),
    Run("load_into_net.py", [["net.ckpt", "parts"]], net=True),
)
