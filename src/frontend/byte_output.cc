#include "src/frontend/byte_output.h"

#include <optional>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/output_pipe.h"
#include "src/os/staged_file.h"
#include "src/os/write_file.h"

namespace reshard {

class ByteOutput::Impl {
 public:
  Impl(std::string path, bool replace) : path_(std::move(path)), replace_(replace) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (is_pipe_ && !pipe_) OutputPipe::Dismiss(path_);
  }

  Status Check() {
    if (path_.empty()) return OpenPipe();
    if (is_pipe_) return {};
    Status status = CheckWritable(path_, replace_);
    if (status.code() == StatusCode::kNotFound) return {};  // its folder, which is made
    return status;
  }

  Status Open(uint64_t size) {
    if (pipe_) return {};
    if (is_pipe_) return OpenPipe();
    RESHARD_ASSIGN_OR_RETURN(SingleOutput place, SingleOutput::Claim(path_, replace_));
    place_.emplace(std::move(place));
    RESHARD_ASSIGN_OR_RETURN(StagedFile file, place_->Create(size, {}));
    file_.emplace(std::move(file));
    return {};
  }

  Status Write(std::span<const std::byte> bytes) {
    if (pipe_) return pipe_->Write(bytes);
    RESHARD_RETURN_IF_ERROR(file_->WriteAt(written_, bytes));
    written_ += bytes.size();
    return {};
  }

  Status Finish() {
    if (pipe_) return pipe_->Close();
    RESHARD_RETURN_IF_ERROR(file_->Finish());
    return place_->Publish();
  }

 private:
  Status OpenPipe() {
    RESHARD_ASSIGN_OR_RETURN(
        auto pipe, path_.empty() ? OutputPipe::StandardOutput() : OutputPipe::Open(path_));
    pipe_.emplace(std::move(pipe));
    return {};
  }

  const std::string path_;
  const bool replace_;
  const bool is_pipe_ = OutputPipe::IsAt(path_);
  std::optional<OutputPipe> pipe_;
  std::optional<SingleOutput> place_;
  std::optional<StagedFile> file_;
  uint64_t written_ = 0;
};

Result<ByteOutput> ByteOutput::Make(const std::string& path, bool replace) {
  auto impl = std::make_unique<Impl>(path, replace);
  RESHARD_RETURN_IF_ERROR(impl->Check());
  return ByteOutput(std::move(impl));
}

ByteOutput::ByteOutput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ByteOutput::ByteOutput(ByteOutput&& other) noexcept = default;
ByteOutput::~ByteOutput() = default;

Status ByteOutput::Open(uint64_t size) { return impl_->Open(size); }
Status ByteOutput::Write(std::span<const std::byte> bytes) { return impl_->Write(bytes); }
Status ByteOutput::Finish() { return impl_->Finish(); }

}  // namespace reshard
