"""The functions of mindspore.parallel."""

from ._layouts import build_searched_strategy, restore_group_info_list
from ._load import load_segmented_checkpoints
from ._merge import merge_sliced_parameter
from ._transform import (
    convert_checkpoint_by_rank,
    convert_checkpoints,
    merge_pipeline_strategys,
    rank_list_for_convert,
    rank_list_for_transform,
    transform_checkpoint_by_rank,
    transform_checkpoints,
)
from ._safetensors import load_distributed_checkpoint, unified_safetensors

__all__ = [
    "build_searched_strategy",
    "convert_checkpoint_by_rank",
    "convert_checkpoints",
    "load_distributed_checkpoint",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "rank_list_for_convert",
    "rank_list_for_transform",
    "restore_group_info_list",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
]
