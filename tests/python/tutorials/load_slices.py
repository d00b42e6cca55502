"""Loads whole parameters, cuts this process's part out of each, and saves what came of it."""

import sys

import numpy as np
from mindspore import Tensor, load_checkpoint, save_checkpoint
from mindspore.communication import get_rank

parameter_dict = load_checkpoint(sys.argv[1])
for paramname in ["weight", "moments.weight"]:
    new_param = parameter_dict[paramname]
    slice_list = np.split(new_param.data.asnumpy(), int(sys.argv[3]), axis=0)
    tensor_slice = Tensor(slice_list[get_rank()])
    new_param.set_data(tensor_slice, True)
save_checkpoint([{"name": name, "data": param} for name, param in parameter_dict.items()],
                sys.argv[2])
print(get_rank(), [tuple(param.shape) for param in parameter_dict.values()])
