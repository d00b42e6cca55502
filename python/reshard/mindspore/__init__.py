"""MindSpore's checkpoint functions, with or without MindSpore: docs/guide/python_mindspore.md."""

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
from ._patch import patch, unpatch
from ._safetensors import (
    ckpt_to_safetensors,
    load_distributed_checkpoint,
    safetensors_to_ckpt,
    unified_safetensors,
)
from ._save import async_ckpt_thread_status, get_ckpt_path_with_strategy, save_checkpoint

__all__ = [
    "RankError",
    "StrategyError",
    "TargetError",
    "async_ckpt_thread_status",
    "build_searched_strategy",
    "ckpt_to_safetensors",
    "get_ckpt_path_with_strategy",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_distributed_checkpoint",
    "load_param_into_net",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "parallel",
    "patch",
    "rank_list_for_transform",
    "restore_group_info_list",
    "safetensors_to_ckpt",
    "save_checkpoint",
    "train",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
    "unpatch",
]
