// Writes the checkpoint files of a sample.
//
// Distinct files may be written by distinct threads.
#ifndef RESHARD_TOOLS_GEN_SAMPLE_FILES_H_
#define RESHARD_TOOLS_GEN_SAMPLE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "tools/gen/sample_model.h"

namespace reshard {

// Writes the checkpoint of local rank `rank` of a stage to the new file `name`, streaming through a
// buffer of 4 MiB, and returns its size in bytes. With `sparse`, content is a hole that reads as
// zeros and takes no space. Errors: kAlreadyExists, kIo.
Result<uint64_t> WriteCheckpoint(const std::vector<SampleParameter>& parameters, int64_t rank,
                                 bool sparse, const OutputDirectory& folder,
                                 const std::string& name);

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_SAMPLE_FILES_H_
