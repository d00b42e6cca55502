// EachFileTarget: every file of a source by itself, written whole.
//
// Thread-safe; the source must outlive it.
#ifndef RESHARD_SRC_PLAN_EACH_FILE_TARGET_H_
#define RESHARD_SRC_PLAN_EACH_FILE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "reshard/status.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"
#include "src/source/source.h"

namespace reshard {

class EachFileTarget final : public Target {
 public:
  // `paths`: of the target files, one for each source file. With `refuse_texts` a text that
  // `container` cannot hold is an error, else it is left out and noted. With `takes_same` a source
  // may be in `container` already.
  EachFileTarget(const Source& source, ParameterChoice choice, const Container& container,
                 std::vector<std::string> paths, bool refuse_texts, bool takes_same)
      : Target(source, std::move(choice)),
        container_(container),
        paths_(std::move(paths)),
        refuse_texts_(refuse_texts),
        takes_same_(takes_same) {}

  int64_t files() const override { return static_cast<int64_t>(paths_.size()); }
  std::string PathOf(int64_t file) const override { return paths_[static_cast<size_t>(file)]; }
  // Arrays are in the order of the bytes of their names in the source, or in the order of the
  // source file if that is in the same container. More errors: kMismatch for such a file without
  // `takes_same`.
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

 private:
  Status MakeArray(int64_t file, const std::string& name, PlanFindings& findings,
                   TargetArray& array) const;

  const Container& container_;
  const std::vector<std::string> paths_;
  const bool refuse_texts_;
  const bool takes_same_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_EACH_FILE_TARGET_H_
