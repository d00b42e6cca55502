"""Converts each pipeline stage by its own strategy, and loads the parts of each rank together."""

import os
import sys

import mindspore as ms

src_checkpoints_dir, dst_checkpoints_dir, dst_strategy_file, *stage_strategy_list = sys.argv[1:]
for src_strategy_file in stage_strategy_list:
    ms.transform_checkpoints(src_checkpoints_dir, dst_checkpoints_dir, "checkpoint_",
                             src_strategy_file, dst_strategy_file)

for rank in sorted(name for name in os.listdir(dst_checkpoints_dir) if name.startswith("rank_")):
    param_dict = ms.load_segmented_checkpoints(os.path.join(dst_checkpoints_dir, rank))
    for name in sorted(param_dict):
        print(rank, name, param_dict[name].shape, param_dict[name].dtype)
