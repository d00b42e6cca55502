"""MindSpore's checkpoint functions, with or without MindSpore: docs/python_mindspore.md."""

from __future__ import annotations

from ._check import RankError, StrategyError, TargetError
from ._layouts import build_searched_strategy, restore_group_info_list
from ._load import (
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    load_segmented_checkpoints,
)
from ._merge import merge_sliced_parameter
from ._transform import (
    merge_pipeline_strategys,
    rank_list_for_transform,
    transform_checkpoint_by_rank,
    transform_checkpoints,
)
from . import parallel, train

__all__ = [
    "RankError",
    "StrategyError",
    "TargetError",
    "build_searched_strategy",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "parallel",
    "rank_list_for_transform",
    "restore_group_info_list",
    "train",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
]
