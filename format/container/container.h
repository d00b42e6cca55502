// Container: how a checkpoint file is written down, whatever it holds.
#ifndef RESHARD_FORMAT_CONTAINER_CONTAINER_H_
#define RESHARD_FORMAT_CONTAINER_CONTAINER_H_

namespace reshard {

enum class Container {
  kMindSpore,  // protobuf: Values one behind the other (format/mindspore_checkpoint)
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_CONTAINER_H_
