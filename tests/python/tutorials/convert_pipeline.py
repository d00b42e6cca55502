"""Merges the strategies of pipeline stages and converts a folder by the merged one."""

import argparse

import mindspore as ms

parser = argparse.ArgumentParser()
parser.add_argument("--src_strategy_dir")
parser.add_argument("--src_checkpoints_dir")
parser.add_argument("--dst_checkpoints_dir")
parser.add_argument("--src_strategy_file")
parser.add_argument("--dst_strategy_file")
args_opt = parser.parse_args()

ms.merge_pipeline_strategys(args_opt.src_strategy_dir, args_opt.src_strategy_file)
ms.transform_checkpoints(args_opt.src_checkpoints_dir, args_opt.dst_checkpoints_dir, "checkpoint_",
                         args_opt.src_strategy_file, args_opt.dst_strategy_file)
