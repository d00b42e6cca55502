// A source that somebody writes to while it is converted.

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/with_bytes.h"

namespace reshard::convert_changes_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Between the copying of bytes and their digest, too: which of them the change hits is chance.
TEST(ConvertChangesTest, AreNamedAsWhatTheyAre) {
  const std::vector<NamedLayout> columns = {{"w", MakeLayout({4}, {{-1, 0}})}};
  const TestTensor weight = MakeTensor("w", DType::kFloat32, {1024, 2048});
  ConversionFolder folder({}, columns);
  folder.WriteRank(0, std::vector<TestTensor>{weight});
  const std::string path = folder.folder().path() / "source" / RankPath(0);
  const auto overwrite = [&](char byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(weight.content.size() - 8192, byte);
  };
  std::jthread writer([&](const std::stop_token& stop) {
    for (char byte = 0; !stop.stop_requested(); ++byte) overwrite(byte);
  });
  for (int i = 0; i < 5; ++i) {
    folder.options().force = true;
    folder.options().run.progress = WithBytes([&] { overwrite('x'); });
    const Status status = Convert(folder.options()).status();
    EXPECT_EQ(status.code(), StatusCode::kChanged) << status.message();
    EXPECT_THAT(status.message(), Not(HasSubstr("`resume`"))) << "which would refuse it";
  }
}

}  // namespace
}  // namespace reshard::convert_changes_test
