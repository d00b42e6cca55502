"""Converts the checkpoint of this process's rank, as one of several that a launcher starts."""

import argparse
import os

import mindspore as ms
import mindspore.communication as D
from mindspore.communication import get_rank

parser = argparse.ArgumentParser()
parser.add_argument("--src_checkpoints_dir")
parser.add_argument("--dst_checkpoints_dir")
parser.add_argument("--src_strategy_file")
parser.add_argument("--dst_strategy_file")
args_opt = parser.parse_args()

rank_list = ms.rank_list_for_transform(get_rank(), args_opt.src_strategy_file,
                                       args_opt.dst_strategy_file)
checkpoint_file_map = {}
for rank_id in rank_list:
    checkpoint_file_map[rank_id] = os.path.join(
        args_opt.src_checkpoints_dir, "rank_{}".format(rank_id),
        "checkpoint_{}.ckpt".format(rank_id))
save_checkpoint_path = os.path.join(
    args_opt.dst_checkpoints_dir, "rank_{}".format(D.get_rank()),
    "checkpoint_{}.ckpt".format(get_rank()))
ms.transform_checkpoint_by_rank(get_rank(), checkpoint_file_map, save_checkpoint_path,
                                args_opt.src_strategy_file, args_opt.dst_strategy_file)
