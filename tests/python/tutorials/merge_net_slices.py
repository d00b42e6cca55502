"""Joins the slices that ranks have, which go through a net and its optimizer, and saves the whole
ones; needs MindSpore for the net."""

import os
import sys

import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Parameter, Tensor
from mindspore import (build_searched_strategy, load_checkpoint, load_param_into_net,
                       merge_sliced_parameter, save_checkpoint)
from mindspore.nn import Momentum, TrainOneStepCell


class Net(nn.Cell):
    def __init__(self, weight_init):
        super(Net, self).__init__()
        self.weight = Parameter(Tensor(weight_init), layerwise_parallel=True)
        self.fc = ops.MatMul(transpose_b=True)

    def construct(self, x):
        return self.fc(x, self.weight)


def net_of_rank(old_ckpt_file, rank):
    net = Net(np.ones([2, 8]).astype(np.float32))
    opt = Momentum(learning_rate=0.01, momentum=0.9, params=net.get_parameters())
    net = TrainOneStepCell(net, opt)
    param_dict = load_checkpoint(os.path.join("./node" + str(rank), old_ckpt_file))
    load_param_into_net(net, param_dict)
    return net


old_ckpt_file, new_ckpt_file, strategy_file, rank_size = sys.argv[1:]
param_dicts = []
for i in range(int(rank_size)):
    param_dict = {}
    for _, param in net_of_rank(old_ckpt_file, i).parameters_and_names():
        param_dict[param.name] = param
    param_dicts.append(param_dict)
strategy = build_searched_strategy(strategy_file)
param_list = []
for paramname in ["weight", "moments.weight"]:
    sliced_parameters = []
    for i in range(int(rank_size)):
        sliced_parameters.append(param_dicts[i].get(paramname))
    merged_parameter = merge_sliced_parameter(sliced_parameters, strategy)
    param_list.append({"name": paramname, "data": merged_parameter.data})
save_checkpoint(param_list, new_ckpt_file)
