#include "src/verify/damaged_parameters.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/in_steps.h"
#include "src/record/part_record.h"
#include "src/tensor/byte_box.h"
#include "src/tensor/logical_map.h"
#include "src/verify/stored_record.h"

namespace reshard {
namespace {

constexpr size_t kMostNamed = 20;

// Parameters by name; one may have several Values, side by side.
struct Names {
  std::vector<std::string> first;
  uint64_t count = 0;
  std::string last;

  void Add(const std::string& name) {
    if (count > 0 && name == last) return;
    last = name;
    if (++count <= kMostNamed) first.push_back(name);
  }
};

class ParameterFinder {
 public:
  ParameterFinder(SourceFiles& files, const DamagedFile& damaged, const std::stop_token& stop)
      : files_(files), damaged_(damaged), stop_(stop) {}

  // Takes each Value, in file order.
  void Take(const RecordedValue& value) {
    in_box_ = value.name == name_ ? in_box_ + length_ : 0;
    name_ = value.name;
    length_ = value.length;
    if (!status_.ok()) return;
    if (IsBad({end_, value.offset - end_})) headers_.Add(name_);
    end_ = value.offset + value.length;
    if (!IsBad({value.offset, value.length})) return;
    const Result<bool> whole = HasDigest(value);
    if (!whole.ok()) {
      status_ = whole.status();
    } else if (!*whole) {
      contents_.Add(name_);
    }
  }

  Status NameIn(Damage& damage) {
    RESHARD_RETURN_IF_ERROR(status_);
    Names& names = contents_.count > 0 ? contents_ : headers_;
    damage.parameters = std::move(names.first);
    damage.parameter_count = names.count;
    return {};
  }

 private:
  // Whether a byte of `range` lies in a bad block.
  bool IsBad(ByteRange range) const {
    const auto block =
        std::upper_bound(damaged_.blocks.begin(), damaged_.blocks.end(), range.offset,
                         [](uint64_t at, ByteRange other) { return at < other.end(); });
    return range.length > 0 && block != damaged_.blocks.end() && block->offset < range.end();
  }

  // Whether the content of `value` is there and has its digest.
  Result<bool> HasDigest(const RecordedValue& value) {
    const std::optional<uint64_t> bytes = TensorBytes(value.full_shape, value.dtype);
    if (!bytes || end_ > damaged_.size) return false;
    const uint64_t box_bytes = Volume(value.box) * ItemBytes(value.dtype);
    if (in_box_ > box_bytes || value.length > box_bytes - in_box_) return false;
    const LogicalMap map({ToByteBox(value.box, value.dtype),
                          static_cast<int64_t>(value.offset) - static_cast<int64_t>(in_box_)},
                         ToByteShape(value.full_shape, value.dtype));
    Digest128 sum;
    const auto add = [&](ByteRange part) -> Status {
      RESHARD_ASSIGN_OR_RETURN(const Window window,
                               files_.Open(damaged_.file, part.offset, part.length));
      return window.Read([this, &map, &sum, &part](const std::byte* data) {
        for (uint64_t at = 0; at < part.length;) {
          const LogicalMap::Place place = map.At(part.offset + at);
          const uint64_t length = std::min(part.length - at, place.contiguous);
          hasher_.Add(sum, data + at, length, place.position);
          at += length;
        }
      });
    };
    RESHARD_RETURN_IF_ERROR(InSteps({value.offset, value.length}, kWindowBytes, stop_, {}, add));
    return ToHex(sum) == value.digest;
  }

  SourceFiles& files_;
  const DamagedFile& damaged_;
  const std::stop_token& stop_;
  LogicalHasher hasher_;
  Status status_;        // of reading
  std::string name_;     // of the last Value
  uint64_t length_ = 0;  // of its content
  uint64_t in_box_ = 0;  // bytes of its box that earlier Values hold
  uint64_t end_ = 0;     // of its content
  Names contents_;       // those that are damaged
  Names headers_;        // those that may be
};

}  // namespace

Status NameParameters(SourceFiles& files, const DamagedFile& damaged, const std::stop_token& stop,
                      Damage& damage) {
  ParameterFinder finder(files, damaged, stop);
  PartRecordParser parser("the part record",
                          [&finder](const RecordedValue& value) { finder.Take(value); });
  RESHARD_RETURN_IF_ERROR(FeedStored(files, damaged.record, stop, parser));
  return finder.NameIn(damage);
}

}  // namespace reshard
