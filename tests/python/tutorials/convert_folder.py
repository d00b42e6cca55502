"""Converts a folder of checkpoints, as MindSpore's tutorial on model transformation does."""

import argparse

import mindspore as ms

parser = argparse.ArgumentParser()
parser.add_argument("--src_checkpoints_dir")
parser.add_argument("--dst_checkpoints_dir")
parser.add_argument("--src_strategy_file")
parser.add_argument("--dst_strategy_file")
args_opt = parser.parse_args()

ms.transform_checkpoints(args_opt.src_checkpoints_dir, args_opt.dst_checkpoints_dir, "checkpoint_",
                         args_opt.src_strategy_file, args_opt.dst_strategy_file)
