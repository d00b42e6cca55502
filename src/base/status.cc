#include "reshard/status.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/out_of_memory.h"

namespace reshard {

std::string_view v0_1::StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kMismatch:
      return "mismatch";
    case StatusCode::kChanged:
      return "changed";
    case StatusCode::kIo:
      return "I/O error";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kInternal:
      return "internal error";
    case StatusCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

int v0_1::ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
      return 2;
    case StatusCode::kNotFound:
    case StatusCode::kCorrupt:
    case StatusCode::kUnsupported:
    case StatusCode::kMismatch:
    case StatusCode::kChanged:
      return 3;
    case StatusCode::kIo:
      return 4;
    case StatusCode::kResourceExhausted:
      return 5;
    case StatusCode::kAlreadyExists:
      return 6;
    case StatusCode::kInternal:
      return 70;
    case StatusCode::kCancelled:
      return 130;
  }
  return 70;
}

Status v0_1::InvalidArgumentError(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status v0_1::NotFoundError(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}
Status v0_1::CorruptError(std::string message) {
  return {StatusCode::kCorrupt, std::move(message)};
}
Status v0_1::UnsupportedError(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
Status v0_1::MismatchError(std::string message) {
  return {StatusCode::kMismatch, std::move(message)};
}
Status v0_1::ChangedError(std::string message) {
  return {StatusCode::kChanged, std::move(message)};
}
Status v0_1::IoError(std::string message) { return {StatusCode::kIo, std::move(message)}; }
Status v0_1::ResourceExhaustedError(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status v0_1::AlreadyExistsError(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status v0_1::InternalError(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}
Status v0_1::CancelledError(std::string message) {
  return {StatusCode::kCancelled, std::move(message)};
}

void v0_1::EndForMisuse(std::string_view reason, const Status& status) noexcept {
  std::string text = "reshard: ";
  text.append(reason).append(": ").append(StatusCodeName(status.code()));
  if (!status.message().empty()) text.append(": ").append(status.message());
  text += '\n';
  std::fputs(text.c_str(), stderr);
  std::abort();
}

Status OutOfMemoryError() noexcept {
  try {
    return ResourceExhaustedError("out of memory; use fewer jobs, or raise the memory limit");
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("out of memory");
  }
}

}  // namespace reshard
