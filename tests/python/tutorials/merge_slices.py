"""Joins the slices that ranks have of each parameter, and saves the whole ones in one file."""

import os
import sys

from mindspore import Tensor
from mindspore import (build_searched_strategy, load_checkpoint, merge_sliced_parameter,
                       save_checkpoint)


def integrate_ckpt_file(old_ckpt_file, new_ckpt_file, strategy_file, rank_size):
    param_dicts = []
    for i in range(rank_size):
        file_name = os.path.join("./node" + str(i), old_ckpt_file)
        param_dicts.append(load_checkpoint(file_name))

    strategy = build_searched_strategy(strategy_file)
    param_dict = {}
    for paramname in ["weight", "moments.weight"]:
        sliced_parameters = []
        for i in range(rank_size):
            parameter = param_dicts[i].get(paramname)
            sliced_parameters.append(parameter)
        merged_parameter = merge_sliced_parameter(sliced_parameters, strategy)
        param_dict[paramname] = merged_parameter

    param_list = []
    for (key, value) in param_dict.items():
        each_param = {}
        each_param["name"] = key
        if isinstance(value.data, Tensor):
            param_data = value.data
        else:
            param_data = Tensor(value.data)
        each_param["data"] = param_data
        param_list.append(each_param)
    save_checkpoint(param_list, new_ckpt_file)


if __name__ == "__main__":
    integrate_ckpt_file(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
