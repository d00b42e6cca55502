// Parameters summed up by module.
#include "tools/cli/module_tree.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard::module_tree_test {
namespace {

TEST(ModuleTreeTest, LayersAreOneRow) {
  ModuleTree tree;
  for (int rank = 0; rank < 2; ++rank) {
    for (int layer = 0; layer < 36; ++layer) {
      const std::string name = "model.layers." + std::to_string(layer) + ".";
      tree.Add(name + "attention.wq.weight", "BFloat16", 1024);
      tree.Add(name + "norm.weight", "Float32", 512);
    }
    tree.Add("model.embedding.weight", "BFloat16", 2048);
    tree.Add("step", "Int32", 4);
  }
  EXPECT_EQ(tree.ToText(12),
            "  MODULE                   PARAMETERS  ALL FILES  DTYPE\n"
            "  model                            73  112.0 KiB  BFloat16, Float32\n"
            "    layers.* x 36                  72  108.0 KiB  BFloat16, Float32\n"
            "      attention.wq.weight          36   72.0 KiB  BFloat16\n"
            "      norm.weight                  36   36.0 KiB  Float32\n"
            "    embedding.weight                1    4.0 KiB  BFloat16\n"
            "  step                              1        8 B  Int32\n");
  EXPECT_EQ(tree.ToText(4),
            "  MODULE              PARAMETERS  ALL FILES  DTYPE\n"
            "  model                       73  112.0 KiB  BFloat16, Float32\n"
            "    layers.* x 36             72  108.0 KiB  BFloat16, Float32\n"
            "    embedding.weight           1    4.0 KiB  BFloat16\n"
            "  step                         1        8 B  Int32\n");
}

TEST(ModuleTreeTest, OptimizersStayOneRow) {
  ModuleTree tree;
  for (const char* name : {"a.w", "a.b", "adam_m.a.w", "adam_m.a.b"}) tree.Add(name, "Float32", 8);
  EXPECT_EQ(tree.ToText(12),
            "  MODULE    PARAMETERS  ALL FILES  DTYPE\n"
            "  a                  2       16 B  Float32\n"
            "    w                1        8 B  Float32\n"
            "    b                1        8 B  Float32\n"
            "  adam_m.a           2       16 B  Float32\n");
}

TEST(ModuleTreeTest, NamesWithoutModulesAreCounted) {
  ModuleTree tree;
  for (int i = 0; i < 100; ++i) tree.Add("p" + std::to_string(i) + "\n", "Float32", 8);
  const std::string text = tree.ToText(3);
  EXPECT_EQ(text,
            "  MODULE  PARAMETERS  ALL FILES  DTYPE\n"
            "  p0\\n             1        8 B  Float32\n"
            "  p1\\n             1        8 B  Float32\n"
            "  p2\\n             1        8 B  Float32\n"
            "  and 97 parameters more\n");
}

}  // namespace
}  // namespace reshard::module_tree_test
