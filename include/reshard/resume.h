// Resume: what a run does with files that an interrupted run of the same conversion left whole.
//
// Implemented in src/job.
#ifndef RESHARD_RESUME_H_
#define RESHARD_RESUME_H_

namespace reshard {

enum class Resume {
  kNo,      // writes all files anew
  kTrust,   // keeps a file that has a part record and its size
  kVerify,  // keeps a file whose digest is that of its part record
};

}  // namespace reshard

#endif  // RESHARD_RESUME_H_
