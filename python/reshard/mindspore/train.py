"""What mindspore.train has of these functions."""

from ._layouts import build_searched_strategy, restore_group_info_list
from ._load import load_checkpoint, load_checkpoint_async, load_param_into_net
from ._merge import merge_sliced_parameter

__all__ = [
    "build_searched_strategy",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "merge_sliced_parameter",
    "restore_group_info_list",
]
