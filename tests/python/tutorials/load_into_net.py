"""Loads a converted checkpoint into a net, and predicts with it; needs MindSpore for the net."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import initializer


class Dense(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight = ms.Parameter(initializer("normal", [in_channels, out_channels], ms.float32))
        self.bias = ms.Parameter(initializer("normal", [out_channels], ms.float32))
        self.matmul = ops.MatMul()
        self.add = ops.Add()

    def construct(self, x):
        return self.add(self.matmul(x, self.weight), self.bias)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer1 = Dense(6, 4)
        self.layer2 = Dense(4, 2)

    def construct(self, x):
        return self.layer2(self.layer1(x))


net = Network()
param_dict = ms.load_checkpoint(sys.argv[1])
print(ms.load_param_into_net(net, param_dict))
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
print(ms.load_param_into_net(optimizer, param_dict)[1])
predict_data = ms.Tensor(np.arange(12).reshape(2, 6).astype(np.float32))
print(ms.Model(net).predict(predict_data))
param_dict = ms.load_segmented_checkpoints(sys.argv[2])
param_not_load, _ = ms.load_param_into_net(net, param_dict)
print(param_not_load, ms.Model(net).predict(predict_data))
