// What a fuzz target is: a function that takes any bytes and returns what is wrong with the answer
// that reshard gives to them, "" where nothing is; crashes and sanitizers tell the rest.
//
// Each is in a file of its own, which the fuzzer and corpus_replay_test compile. Deterministic; one
// thread.
#ifndef RESHARD_TESTS_FUZZ_FUZZ_TARGET_H_
#define RESHARD_TESTS_FUZZ_FUZZ_TARGET_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// A checkpoint file: its Values and its index, against libprotobuf.
std::string FuzzFileTable(std::string_view bytes);

// An encrypted file, made and damaged as the bytes say, against the plain bytes.
std::string FuzzEncryptedBlocks(std::string_view bytes);

// A strategy file, against libprotobuf and against a tree of JSON; its layouts against their
// definition; merging it.
std::string FuzzStrategyProtobuf(std::string_view bytes);
std::string FuzzStrategyJson(std::string_view bytes);

// A manifest, and one line after the other of a part record: what is read is written and read
// again.
std::string FuzzManifest(std::string_view bytes);
std::string FuzzPartRecord(std::string_view bytes);

// Two strategies and a small checkpoint, made as the bytes say, through index and layout to the
// plan of each target rank, which is carried out byte by byte.
std::string FuzzPlan(std::string_view bytes);

// A group_info file, against libprotobuf.
std::string FuzzGroupInfo(std::string_view bytes);

// The specification of a strategy, against a tree of JSON; its layouts against what
// docs/guide/strategies.md says of them; the strategy that it makes, written and read.
std::string FuzzStrategySpec(std::string_view bytes);

// A rename map, against a tree of JSON; its names against the rules for them.
std::string FuzzRenameMap(std::string_view bytes);
std::string FuzzWeightMap(std::string_view bytes);

// The metadata of shards, and the metadata.json of MindFormers 2.0, against a tree of JSON.
std::string FuzzShardingInfo(std::string_view bytes);
std::string FuzzMindFormersMetadata(std::string_view bytes);

// A pickle: what is read is written without a memo, and read again.
std::string FuzzPickle(std::string_view bytes);

// The .metadata of a DCP checkpoint: all that is taken fits together.
std::string FuzzDcpMetadata(std::string_view bytes);

// A file of torch.save, or the data.pkl of one.
std::string FuzzTorchZip(std::string_view bytes);

// Returns what is wrong with the message of an error: it is long, empty, or not fit for a terminal.
std::string MessageFault(const Status& status);

// Returns what is wrong with a refusal: its message, or a code that no input can cause.
std::string RefusalFault(const Status& status);

// As RefusalFault; and the file `path` alone is to blame, and named first: it is corrupt, or what
// `code` says.
std::string RefusalFault(const Status& status, const std::string& path,
                         StatusCode code = StatusCode::kCorrupt);

}  // namespace reshard

#endif  // RESHARD_TESTS_FUZZ_FUZZ_TARGET_H_
