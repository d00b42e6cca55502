"""The functions of mindspore.train."""

from ._layouts import build_searched_strategy, restore_group_info_list
from ._load import load_checkpoint, load_checkpoint_async, load_param_into_net
from ._merge import merge_sliced_parameter
from ._safetensors import ckpt_to_safetensors, load_distributed_checkpoint, safetensors_to_ckpt
from ._save import async_ckpt_thread_status, get_ckpt_path_with_strategy, save_checkpoint

__all__ = [
    "async_ckpt_thread_status",
    "build_searched_strategy",
    "ckpt_to_safetensors",
    "get_ckpt_path_with_strategy",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_distributed_checkpoint",
    "load_param_into_net",
    "merge_sliced_parameter",
    "restore_group_info_list",
    "safetensors_to_ckpt",
    "save_checkpoint",
]
