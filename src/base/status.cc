#include "reshard/status.h"

#include <new>

#include "src/base/out_of_memory.h"

namespace reshard {

std::string_view StatusCodeName(StatusCode code) {
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

int ExitCode(StatusCode code) {
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

Status InvalidArgumentError(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status NotFoundError(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status CorruptError(std::string message) { return {StatusCode::kCorrupt, std::move(message)}; }
Status UnsupportedError(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
Status MismatchError(std::string message) { return {StatusCode::kMismatch, std::move(message)}; }
Status ChangedError(std::string message) { return {StatusCode::kChanged, std::move(message)}; }
Status IoError(std::string message) { return {StatusCode::kIo, std::move(message)}; }
Status ResourceExhaustedError(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status AlreadyExistsError(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status InternalError(std::string message) { return {StatusCode::kInternal, std::move(message)}; }
Status CancelledError(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }

Status OutOfMemoryError() noexcept {
  try {
    return ResourceExhaustedError("out of memory; use fewer jobs, or raise the memory limit");
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("out of memory");
  }
}

}  // namespace reshard
