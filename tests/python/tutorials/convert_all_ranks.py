"""Converts one rank after the other, in a loop, into files beside those of the source."""

import os
import sys

import mindspore as ms

src_checkpoints_dir, dst_device_num, src_strategy_file, dst_strategy_file = sys.argv[1:]
for tgt_rank in range(int(dst_device_num)):
    rank_list = ms.rank_list_for_transform(tgt_rank, src_strategy_file, dst_strategy_file)
    checkpoint_file_map = {}
    for rank_id in rank_list:
        checkpoint_file_map[rank_id] = os.path.join(
            src_checkpoints_dir, "rank_{}".format(rank_id), "checkpoint_{}.ckpt".format(rank_id))
    save_checkpoint_path = os.path.join(
        src_checkpoints_dir, "rank_{}".format(tgt_rank), "dst_checkpoint{}.ckpt".format(tgt_rank))
    ms.transform_checkpoint_by_rank(tgt_rank, checkpoint_file_map, save_checkpoint_path,
                                    src_strategy_file, dst_strategy_file)
