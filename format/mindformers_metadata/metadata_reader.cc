#include "format/mindformers_metadata/metadata_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/container/file_blocks.h"
#include "format/mindformers_metadata/slice_key.h"
#include "format/mindformers_metadata/slice_layout.h"
#include "reshard/parameters.h"
#include "src/base/checked.h"
#include "src/base/json_reader.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

constexpr std::string_view kShardExtension = ".safetensors";
constexpr size_t kLongestName = 255;  // of a file
// The member that older versions of MindFormers do not write.
constexpr std::string_view kRankGroup = "rank_group";

// Bytes that are held for a slice or a place of one, about.
constexpr uint64_t kOfPlace = 160;

// A place of storage_data.
struct Place {
  uint32_t file = 0;
  int64_t rank = 0;
  const std::vector<int64_t>* group = nullptr;  // null: not stated
};

struct Chunk {
  std::vector<int64_t> number;  // global_offset
  Shape shape;
};

// A tensor of state_dict_metadata, as it stands there.
struct StatedTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape full;
  std::vector<int64_t> fragments;
  const SliceLayout* layout = nullptr;  // null: each rank has the whole tensor
  std::vector<Chunk> chunks;
};

// All that a file says.
struct StatedContent {
  std::vector<StatedTensor> entries;
  std::set<SliceLayout> layouts;                     // that entries refer to
  std::set<std::vector<int64_t>> groups;             // that places refer to
  std::map<std::string, uint32_t> files;             // numbers, by name
  std::vector<int64_t> ranks;                        // that wrote the files, by number
  std::map<std::string, std::vector<Place>> places;  // by key; that no chunk has yet
};

// Returns the dtype that MindSpore names so, without regard to case.
std::optional<DType> DTypeNamed(std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (auto i = static_cast<int>(DType::kInt8); i <= static_cast<int>(DType::kComplex64); ++i) {
    const std::string_view known = DTypeName(static_cast<DType>(i));
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(), same)) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

// Whether a name is that of a file in the folder itself.
bool IsBareName(std::string_view name) {
  if (!name.ends_with(kShardExtension) || name.size() > kLongestName) return false;
  return !name.starts_with('.') && std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

class ContentReader final : public JsonReader {
 public:
  ContentReader(const FileBytes& file, const MemoryCheck& memory)
      : JsonReader(file.path), memory_(memory) {}

  StatedContent Finish() && { return std::move(content_); }

 private:
  // Where the place at hand is.
  enum class At : uint8_t {
    kRoot,
    kTensors,     // state_dict_metadata
    kTensor,      // one of these
    kProperties,  // of a tensor
    kLayout,      // of a tensor
    kMap,         // tensor_map
    kAxes,        // of a dimension in there
    kChunks,      // of a tensor
    kChunk,
    kStorage,  // storage_data
    kPlaces,   // of a slice
    kPlace,
    kNumbers,  // any list of these
  };
  struct Open {
    At at = At::kRoot;
    uint32_t seen = 0;  // members, by their place in MembersOf
  };

  // The members that are read; others are passed over.
  static std::vector<std::string_view> MembersOf(At at) {
    switch (at) {
      case At::kRoot:
        return {"state_dict_metadata", "storage_data"};
      case At::kTensor:
        return {"properties", "global_shape", "axis_fragmentations", "layout", "chunk"};
      case At::kProperties:
        return {"dtype"};
      case At::kLayout:
        return {"device_matrix", "tensor_map", "rank_list", "interleaved_parallel"};
      case At::kChunk:
        return {"global_offset", "local_shape"};
      case At::kPlace:
        return {"file_name", "storage_rank", kRankGroup};
      default:
        return {};
    }
  }

  Status OnKey(const std::string& key) override {
    if (Top() == At::kTensors) {
      if (!names_.insert(key).second) return Error(fmt::format("{} occurs twice", Quote(key)));
      content_.entries.emplace_back().name = key;
      return CheckGrowth();
    }
    if (Top() == At::kStorage) {
      const auto [place, is_new] = content_.places.try_emplace(key);
      places_ = &place->second;
      return is_new ? CheckGrowth() : Error(fmt::format("{} occurs twice", Quote(key)));
    }
    const std::vector<std::string_view> members = MembersOf(Top());
    const auto found = std::find(members.begin(), members.end(), key);
    if (found == members.end()) {
      SkipValue();
      return {};
    }
    const uint32_t bit = uint32_t{1} << (found - members.begin());
    if ((open_.back().seen & bit) != 0) {
      return Error(fmt::format("{}{} occurs twice", Where(), Quote(key)));
    }
    open_.back().seen |= bit;
    return {};
  }

  Status OnOpen(bool is_list) override {
    const std::optional<At> next = NextAt(is_list);
    if (!next) return Other(is_list ? "a list" : "an object");
    if (*next == At::kLayout) layout_ = {};
    if (*next == At::kChunk) entry().chunks.emplace_back();
    if (*next == At::kPlace) place_ = {};
    if (*next == At::kNumbers) numbers_.clear();
    if (*next == At::kAxes) layout_.tensor_map.emplace_back();
    open_.push_back({*next, 0});
    return {};
  }

  // Returns what begins at the place at hand; no value if it must not.
  std::optional<At> NextAt(bool is_list) const {
    if (open_.empty()) return is_list ? std::nullopt : std::optional(At::kRoot);
    const std::string_view key = InList() ? std::string_view() : Key(depth());
    const auto object = [is_list](At at) { return is_list ? std::nullopt : std::optional(at); };
    const auto list = [is_list](At at) { return is_list ? std::optional(at) : std::nullopt; };
    switch (Top()) {
      case At::kRoot:
        return object(key == "storage_data" ? At::kStorage : At::kTensors);
      case At::kTensors:
        return object(At::kTensor);
      case At::kTensor:
        if (key == "properties") return object(At::kProperties);
        if (key == "layout") return object(At::kLayout);
        return list(key == "chunk" ? At::kChunks : At::kNumbers);
      case At::kLayout:
        if (key == "interleaved_parallel") return std::nullopt;
        return list(key == "tensor_map" ? At::kMap : At::kNumbers);
      case At::kMap:
        return list(At::kAxes);
      case At::kChunks:
        return object(At::kChunk);
      case At::kChunk:
        return list(At::kNumbers);
      case At::kStorage:
        return list(At::kPlaces);
      case At::kPlaces:
        return object(At::kPlace);
      case At::kPlace:
        return key == kRankGroup ? list(At::kNumbers) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  Status OnValue(JsonValue& value) override {
    if (open_.empty()) return Other(value.KindName());
    const std::optional<int64_t> number = value.Integer();
    const bool is_text = value.kind == JsonValue::Kind::kString;
    const std::string_view key = InList() ? std::string_view() : Key(depth());
    switch (Top()) {
      case At::kNumbers:
        if (!number || *number < 0) break;
        numbers_.push_back(*number);
        return CheckGrowth(sizeof(int64_t));
      case At::kMap:
        if (!number || *number < -1) break;
        layout_.tensor_map.emplace_back();
        if (*number >= 0) layout_.tensor_map.back().push_back(*number);
        return {};
      case At::kAxes:
        if (!number || *number < 0) break;
        layout_.tensor_map.back().push_back(*number);
        return {};
      case At::kTensor:
        if (key == "layout" && value.kind == JsonValue::Kind::kNull) return {};
        break;
      case At::kProperties:
        if (is_text) return SetDType(*value.text);
        break;
      case At::kLayout:
        if (key != "interleaved_parallel" || value.kind != JsonValue::Kind::kBoolean) break;
        layout_.is_interleaved = value.number != 0;
        return {};
      case At::kPlace:
        if (key == "file_name" && is_text) return SetFile(*value.text);
        if (key != "storage_rank" || !number || *number < 0) break;
        place_.rank = *number;
        return {};
      default:
        break;
    }
    return Other(value.Shown());
  }

  Status OnClose(bool /*is_list*/) override {
    const Open closed = open_.back();
    open_.pop_back();
    const std::vector<std::string_view> members = MembersOf(closed.at);
    for (size_t i = 0; i < members.size(); ++i) {
      if ((closed.seen >> i & 1) == 0 && members[i] != kRankGroup) {
        return Error(fmt::format("{}lacks {}", Where(), Quote(members[i])));
      }
    }
    switch (closed.at) {
      case At::kNumbers:
        return TakeNumbers();
      case At::kLayout:
        entry().layout = &*content_.layouts.insert(std::move(layout_)).first;
        return {};
      case At::kPlace:
        RESHARD_RETURN_IF_ERROR(CheckRankOfFile());
        places_->push_back(place_);
        return CheckGrowth();
      default:
        return {};
    }
  }

  // Takes the numbers of the list that has ended.
  Status TakeNumbers() {
    const std::string& key = Key(depth());
    if (Top() == At::kPlace) {
      place_.group = &*content_.groups.insert(numbers_).first;
    } else if (Top() == At::kLayout) {
      (key == "rank_list" ? layout_.ranks : layout_.device_matrix) = numbers_;
    } else if (Top() == At::kChunk) {
      Chunk& chunk = entry().chunks.back();
      (key == "local_shape" ? chunk.shape : chunk.number) = numbers_;
      return CheckGrowth();
    } else {
      (key == "global_shape" ? entry().full : entry().fragments) = numbers_;
    }
    return {};
  }

  Status SetDType(const std::string& name) {
    const std::optional<DType> dtype = DTypeNamed(name);
    if (!dtype) {
      return Error(StatusCode::kUnsupported,
                   fmt::format("{}has the dtype {}, which is not known", Where(), Quote(name)));
    }
    entry().dtype = *dtype;
    return {};
  }

  Status SetFile(const std::string& name) {
    const auto known = content_.files.find(name);
    if (known != content_.files.end()) {
      place_.file = known->second;
      return {};
    }
    if (!IsBareName(name)) {
      return Error(fmt::format("{}the file {} is not the name of a safetensors file in the folder",
                               Where(), Quote(name)));
    }
    place_.file = static_cast<uint32_t>(content_.files.size());
    content_.files.emplace(name, place_.file);
    return {};
  }

  // A rank writes files of its own, each with one slice of a tensor.
  Status CheckRankOfFile() {
    if (place_.file == content_.ranks.size()) content_.ranks.push_back(place_.rank);
    const int64_t known = content_.ranks[place_.file];
    if (known == place_.rank) return {};
    const auto name = std::find_if(content_.files.begin(), content_.files.end(),
                                   [this](const auto& file) { return file.second == place_.file; });
    return Error(fmt::format("{}the file {} has the storage_rank {}, but {} in another place",
                             Where(), Quote(name->first), place_.rank, known));
  }

  Status Other(std::string_view found) const {
    if (open_.empty()) return Error(fmt::format("expected an object, found {}", found));
    const bool in_list = InList();
    const std::string at = in_list ? depth() > 1 ? Key(depth() - 1) : std::string() : Key(depth());
    return Error(fmt::format("{}{}: expected something else, found {}", Where(), Quote(at), found));
  }

  // The tensor or the slice at hand, for messages.
  std::string Where() const { return depth() < 2 ? "" : fmt::format("{}: ", Quote(Key(2))); }

  Status CheckGrowth(uint64_t bytes = kOfPlace) {
    grown_ += bytes;
    if (grown_ < kMemoryCheckInterval * kOfPlace) return {};
    grown_ = 0;
    return CheckMemory(memory_, kMemoryCheckInterval * kOfPlace);
  }

  At Top() const { return open_.back().at; }
  StatedTensor& entry() { return content_.entries.back(); }

  const MemoryCheck& memory_;
  StatedContent content_;
  std::vector<Open> open_;
  std::unordered_set<std::string> names_;
  SliceLayout layout_;
  Place place_;
  std::vector<Place>* places_ = nullptr;
  std::vector<int64_t> numbers_;
  uint64_t grown_ = 0;
};

// Turns what a file says into boxes, and proves that it does not contradict itself.
class Resolver {
 public:
  Resolver(const FileBytes& file, const MemoryCheck& memory, StatedContent content)
      : path_(file.path), memory_(memory), content_(std::move(content)) {}

  Result<MindFormersMetadata> Resolve() && {
    MindFormersMetadata metadata;
    std::vector<uint32_t> numbers(content_.files.size());
    for (const auto& [name, number] : content_.files) {  // ascending by name
      numbers[number] = static_cast<uint32_t>(metadata.files.size());
      metadata.files.push_back(name);
    }
    metadata.tensors.reserve(content_.entries.size());
    for (StatedTensor& entry : content_.entries) {
      RESHARD_ASSIGN_OR_RETURN(MindFormersTensor tensor, TensorOf(entry));
      for (MindFormersSlice& slice : tensor.slices) {
        for (uint32_t& file : slice.files) file = numbers[file];
        std::sort(slice.files.begin(), slice.files.end());
        slice.files.erase(std::unique(slice.files.begin(), slice.files.end()), slice.files.end());
      }
      metadata.tensors.push_back(std::move(tensor));
      if (metadata.tensors.size() % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
      }
    }
    if (content_.places.empty()) return metadata;
    return CorruptError(fmt::format("{}: storage_data has {}, which is no chunk of a tensor",
                                    Escape(path_), Quote(content_.places.begin()->first)));
  }

 private:
  template <typename... Values>
  Status Corrupt(const StatedTensor& entry, fmt::format_string<Values...> text,
                 Values&&... values) const {
    return CorruptError(fmt::format("{}: {}: {}", Escape(path_), Quote(entry.name),
                                    fmt::format(text, std::forward<Values>(values)...)));
  }

  Result<MindFormersTensor> TensorOf(StatedTensor& entry) {
    if (entry.full.size() > kMaxDims || !TensorBytes(entry.full, entry.dtype)) {
      return Corrupt(entry, "global_shape {} has too many bytes", FirstNumbers(entry.full));
    }
    if (entry.fragments.size() != entry.full.size()) {
      return Corrupt(entry, "axis_fragmentations {} and global_shape {} have other dimensions",
                     FirstNumbers(entry.fragments), ToString(entry.full));
    }
    RESHARD_ASSIGN_OR_RETURN(const SlicesOfRanks* const slices, SlicesBy(entry));
    if (entry.chunks.empty()) return Corrupt(entry, "has no chunk");
    MindFormersTensor tensor{entry.name, entry.dtype, entry.full, entry.chunks.front().shape, {}};
    for (size_t d = 0; d < entry.full.size(); ++d) {
      const int64_t cuts = entry.fragments[d];
      if (cuts > 0 && tensor.slice_shape.size() == entry.full.size() &&
          CheckedMul(cuts, tensor.slice_shape[d]) == entry.full[d]) {
        continue;
      }
      return Corrupt(entry, "global_shape {} is not local_shape {} times axis_fragmentations {}",
                     ToString(entry.full), FirstNumbers(tensor.slice_shape),
                     FirstNumbers(entry.fragments));
    }
    if (tensor.slice_shape.size() != entry.full.size()) {
      return Corrupt(entry, "local_shape {} and global_shape {} have other dimensions",
                     FirstNumbers(tensor.slice_shape), ToString(entry.full));
    }
    std::set<int64_t> numbers;
    std::map<uint32_t, int64_t> slice_of_file;
    for (const Chunk& chunk : entry.chunks) {
      if (chunk.number.size() != 1 || !numbers.insert(chunk.number.front()).second) {
        return Corrupt(entry, "a global_offset is {}; expected the number of another slice",
                       FirstNumbers(chunk.number));
      }
      if (chunk.shape != tensor.slice_shape) {
        return Corrupt(entry, "slices have the shapes {} and {}", ToString(tensor.slice_shape),
                       FirstNumbers(chunk.shape));
      }
      RESHARD_ASSIGN_OR_RETURN(MindFormersSlice slice,
                               SliceOf(entry, tensor, chunk.number.front(), slices));
      for (const uint32_t file : slice.files) {
        const auto known = slice_of_file.try_emplace(file, chunk.number.front()).first;
        if (known->second == chunk.number.front()) continue;
        return Corrupt(entry, "storage_data has slices {} and {} in one file, {}", known->second,
                       chunk.number.front(), Quote(NameOf(file)));
      }
      tensor.slices.push_back(std::move(slice));
    }
    return tensor;
  }

  std::string NameOf(uint32_t number) const {
    const auto is_it = [number](const auto& file) { return file.second == number; };
    return std::find_if(content_.files.begin(), content_.files.end(), is_it)->first;
  }

  // Returns the slices by the layout of a tensor; null without one.
  Result<const SlicesOfRanks*> SlicesBy(const StatedTensor& entry) {
    if (entry.layout == nullptr) {
      const bool is_cut = std::any_of(entry.fragments.begin(), entry.fragments.end(),
                                      [](int64_t cuts) { return cuts != 1; });
      if (is_cut) {
        return Corrupt(entry, "has no layout, but axis_fragmentations {}",
                       FirstNumbers(entry.fragments));
      }
      return nullptr;
    }
    if (entry.layout->is_interleaved) {
      return UnsupportedError(fmt::format(
          "{}: {}: is cut by interleaved_parallel, which reshard does not read; load it "
          "in MindFormers, and save it without",
          Escape(path_), Quote(entry.name)));
    }
    const auto known = by_layout_.find(entry.layout);
    if (known == by_layout_.end()) {
      const uint64_t bytes = entry.layout->ranks.size() * kOfPlace;
      RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, std::max(bytes, kFewBytes)));
      Result<SlicesOfRanks> slices = SlicesOf(*entry.layout);
      if (!slices.ok()) return Corrupt(entry, "{}", slices.status().message());
      const auto place = by_layout_.emplace(entry.layout, *std::move(slices)).first;
      return CheckFragments(entry, place->second);
    }
    return CheckFragments(entry, known->second);
  }

  Result<const SlicesOfRanks*> CheckFragments(const StatedTensor& entry,
                                              const SlicesOfRanks& slices) {
    if (slices.fragments == entry.fragments) return &slices;
    return Corrupt(entry, "axis_fragmentations are {}, but {} by the layout",
                   FirstNumbers(entry.fragments), FirstNumbers(slices.fragments));
  }

  Result<MindFormersSlice> SliceOf(const StatedTensor& entry, const MindFormersTensor& tensor,
                                   int64_t number, const SlicesOfRanks* slices) {
    MindFormersSlice slice;
    slice.begin.resize(entry.full.size());
    int64_t rest = number;
    for (size_t d = entry.full.size(); d-- > 0;) {
      slice.begin[d] = rest % entry.fragments[d] * tensor.slice_shape[d];
      rest /= entry.fragments[d];
    }
    if (rest != 0) {
      return Corrupt(entry, "slice {} is beyond axis_fragmentations {}", number,
                     FirstNumbers(entry.fragments));
    }
    const std::string key = SliceKey(entry.name, number);
    const auto found = content_.places.find(key);
    if (found == content_.places.end() || found->second.empty()) {
      return Corrupt(entry, "storage_data has no file for slice {}, expected at {}", number,
                     Quote(key));
    }
    for (const Place& place : found->second) slice.files.push_back(place.file);
    if (slices != nullptr) {
      RESHARD_RETURN_IF_ERROR(CheckPlaces(entry, found->second, number, *slices));
    }
    content_.places.erase(found);
    return slice;
  }

  // Checks that the ranks of the places hold that slice by the layout. Other pipeline stages, whose
  // ranks it lacks, may have the tensor, too.
  Status CheckPlaces(const StatedTensor& entry, const std::vector<Place>& places, int64_t number,
                     const SlicesOfRanks& slices) {
    bool has_listed = false;
    for (const Place& place : places) {
      RESHARD_RETURN_IF_ERROR(CheckRanks(entry, place, number, slices));
      has_listed = has_listed || slices.slice.contains(place.rank);
    }
    if (has_listed) return {};
    return Corrupt(entry, "storage_data has slice {} of rank {}, which rank_list lacks{}", number,
                   places.front().rank, places.size() == 1 ? "" : ", and of no rank that it has");
  }

  Status CheckRanks(const StatedTensor& entry, const Place& place, int64_t number,
                    const SlicesOfRanks& slices) {
    RESHARD_RETURN_IF_ERROR(CheckRank(entry, place.rank, number, slices));
    if (place.group == nullptr) return {};
    const auto [known, is_new] = by_group_.try_emplace({&slices, place.group}, number);
    if (!is_new && known->second == number) return {};
    for (const int64_t rank : *place.group) {
      RESHARD_RETURN_IF_ERROR(CheckRank(entry, rank, number, slices));
    }
    return {};
  }

  Status CheckRank(const StatedTensor& entry, int64_t rank, int64_t number,
                   const SlicesOfRanks& slices) const {
    const auto found = slices.slice.find(rank);
    if (found == slices.slice.end() || found->second == number) return {};
    return Corrupt(entry, "storage_data has slice {} of rank {}, but by the layout it has slice {}",
                   number, rank, found->second);
  }

  const std::string_view path_;
  const MemoryCheck& memory_;
  StatedContent content_;
  std::map<const SliceLayout*, SlicesOfRanks> by_layout_;
  // The slice that all ranks of a group have by a layout.
  std::map<std::pair<const SlicesOfRanks*, const std::vector<int64_t>*>, int64_t> by_group_;
};

}  // namespace

Result<MindFormersMetadata> ReadMindFormersMetadata(const FileBytes& file,
                                                    const MemoryCheck& memory) {
  if (file.size > kMostMindFormersMetadata) {
    return ResourceExhaustedError(fmt::format("{}: {}; a metadata.json may have at most {}",
                                              Escape(file.path), FormatBytes(file.size),
                                              FormatBytes(kMostMindFormersMetadata)));
  }
  FileBlocks blocks(file, {0, file.size}, memory);
  ContentReader reader(file, memory);
  RESHARD_RETURN_IF_ERROR(reader.Read(0, [&blocks] { return blocks.Next(); }));
  return Resolver(file, memory, std::move(reader).Finish()).Resolve();
}

}  // namespace reshard
