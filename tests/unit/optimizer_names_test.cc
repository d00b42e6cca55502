#include "reshard/optimizer_names.h"

#include <gtest/gtest.h>

namespace reshard {
namespace {

TEST(OptimizerGroupTest, IsWhatTheNameBeginsWithAsFarAsItsDot) {
  const struct {
    const char* name;
    const char* group;
  } rows[] = {
      {"adam_m.w", "adam_m"},
      {"adam_v.layer.w", "adam_v"},
      {"accu_grads.w", "accu_grads"},
      {"moments.w", "moments"},
      {"moment1.w", "moment1"},
      {"moment2.w", "moment2"},
      {"adam_m.", "adam_m"},
      {"adam_m", ""},
      {"adam_mw.w", ""},
      {"layer.adam_m.w", ""},
      {"moment3.w", ""},
      {"", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(OptimizerGroup(row.name), row.group) << row.name;
}

}  // namespace
}  // namespace reshard
