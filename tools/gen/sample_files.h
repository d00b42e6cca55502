// Writes a sample: the checkpoint of each rank and the strategy file of each stage.
//
//   FOLDER/rank_N/llama-1_100.ckpt
//   FOLDER/strategy/strategy_S.ckpt   (or .json)
//
// Distinct samples may be written by distinct threads.
#ifndef RESHARD_TOOLS_GEN_SAMPLE_FILES_H_
#define RESHARD_TOOLS_GEN_SAMPLE_FILES_H_

#include <cstdint>
#include <string>

#include "reshard/status.h"
#include "tools/gen/sample_model.h"

namespace reshard {

struct SampleOptions {
  std::string folder;  // empty, or not there yet
  SampleModel model;
  bool sparse = false;         // content is a hole that reads as zeros and takes no space
  bool json = false;           // strategy files as JSON
  bool strategy_only = false;  // no checkpoints
};

// Writes the sample, streaming through a buffer of 4 MiB, and returns the size of all checkpoints
// in bytes. Errors: kInvalidArgument (the model), kAlreadyExists (a folder that is not empty), kIo.
Result<uint64_t> WriteSample(const SampleOptions& options);

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_SAMPLE_FILES_H_
