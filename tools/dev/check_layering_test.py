#!/usr/bin/env python3
"""Tests check_layering.py: a small tree without violations, and one violation planted at a time."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layering  # noqa: E402

TABLE = (pathlib.Path(__file__).resolve().parent / "layering.txt").read_text()


def unnamed(text):
    return f"namespace {{\n{text}\n}}  // namespace\n"


TREE = {
    "CMakeLists.txt": """set(RESHARD_UNIT plans)
add_subdirectory(src/base)
add_subdirectory(src/tensor)
add_subdirectory(src/plan)
set(RESHARD_UNIT calls)
add_subdirectory(src/write)
add_subdirectory(src/cast)
add_subdirectory(src/api)
if(X)
  add_subdirectory(tools/mount)
endif()
""",
    "src/plan/sizes.cc": unnamed("int SizeOf(int x) { return x; }"),
    "src/tensor/hot.cc": unnamed("int HotOf() { return 1; }"),
    "src/write/CMakeLists.txt": "reshard_module(write HOT)",
    "src/cast/CMakeLists.txt": "reshard_module(cast KERNELS)",
    "src/cast/one.cc": unnamed("int CastOf() { return 1; }"),
    "tools/mount/CMakeLists.txt": "reshard_tool(mount)",
    "tools/mount/main.cc": unnamed("int MountOf() { return 1; }"),
    "include/reshard/status.h": "// Status.\n// Implemented in src/base.\n#include <string>\n",
    "include/reshard/convert.h": '// Convert.\n// Implemented in src/api.\n#include "reshard/status.h"\n',
    "src/base/CMakeLists.txt": "reshard_module(base SOURCES status.cc PUBLIC_HEADERS reshard/status.h)",
    "src/base/status.cc": '#include "reshard/status.h"\n',
    "src/tensor/block_copy.h": '#include "reshard/status.h"\n',
    "src/tensor/CMakeLists.txt": "reshard_module(tensor HOT DEPENDS base)",
    "src/os/mapped_file.cc": "#include <sys/mman.h>\n#include <boost/interprocess/mapped_region.hpp>\n",
    "src/plan/CMakeLists.txt": "reshard_module(plan DEPENDS source)",
    "src/plan/target_plan.h": '#include "src/tensor/block_copy.h"\n#include "format/rename_map/manifest.h"\n',
    "src/api/CMakeLists.txt": "reshard_module(api\n  PUBLIC_HEADERS reshard/convert.h\n  DEPENDS plan rename_map)",
    "format/rename_map/manifest.h": '#include "src/tensor/block_copy.h"\n#include <nlohmann/json.hpp>\n',
    "format/rename_map/rename_fields.proto": "",
    "src/record/SPEC.md": "",
    "format/other/SPEC.md": "",
    "tools/cli/convert_command.cc": '#include <CLI/CLI.hpp>\n#include <unistd.h>\n#include "reshard/convert.h"\n#include "tools/cli/convert_command.h"\n',
    "tools/cli/convert_command.h": '#include "reshard/version.h"\n',
}

# name of the row, file, its content, a part of the single message about that file (None: no
# message)
VIOLATIONS = [
    ("against the arrow", "src/tensor/x.cc", '#include "src/plan/target_plan.h"\n', "tensor must not include plan"),
    ("format upwards", "format/rename_map/x.cc", '#include "src/plan/target_plan.h"\n', "format must not include plan"),
    ("into format", "src/tensor/x.cc", '#include "format/rename_map/manifest.h"\n', "tensor must not include format"),
    ("public header of a higher module", "src/base/x.cc", '#include "reshard/convert.h"\n', "base must not include api"),
    ("commented include is none", "src/base/x.cc", '// #include "reshard/convert.h"\n', None),
    ("indented include", "src/base/x.cc", '  # include "reshard/convert.h"\n', "base must not include api"),
    ("unknown public header", "src/base/x.cc", '#include "reshard/gone.h"\n', "no header of a module"),
    ("relative include", "src/tensor/x.cc", '#include "block_copy.h"\n', "no header of a module"),
    ("test code in a module", "src/api/x.cc", '#include "tests/support/x.h"\n', "no header of a module"),
    ("system call outside os", "src/plan/x.cc", "#include <sys/stat.h>\n", "<sys/stat.h> is only for os"),
    ("local file system outside of os and io", "src/plan/x.cc", '#include "src/os/paths.h"\n', "<src/os/paths.h> is only for os, io"),
    ("local file system in io", "src/io/x.cc", '#include "src/os/paths.h"\n', None),
    ("the longest pattern counts", "src/digest/x.cc", "#include <sys/auxv.h>\n", None),
    ("for digest alone", "src/os/x.cc", "#include <sys/auxv.h>\n", "<sys/auxv.h> is only for digest"),
    ("system header in a public one", "include/reshard/status.h", "// Implemented in src/base.\n#include <fcntl.h>\n", "<fcntl.h> is only for os"),
    ("Boost.Interprocess outside os", "src/source/x.cc", "#include <boost/interprocess/mapped_region.hpp>\n", "only for os"),
    ("protobuf outside format", "src/source/x.cc", "#include <google/protobuf/message.h>\n", "only for format"),
    ("cli includes internals", "tools/cli/x.cc", '#include "src/tensor/block_copy.h"\n', 'only "reshard/..."'),
    ("gen's headers are for python", "python/src/x.cc", '#include "tools/gen/x.h"\n', None),
    ("gen's headers are not for cli", "tools/cli/x.cc", '#include "tools/gen/x.h"\n', 'only "reshard/..."'),
    ("public header includes internals", "include/reshard/status.h", '// Implemented in src/base.\n#include "src/base/x.h"\n', "a public header includes only"),
    ("public header names no module", "include/reshard/box.h", "// Box.\n\n// Implemented in src/base.\n", "first comment needs"),
    ("public header is not listed", "include/reshard/box.h", "// Implemented in src/tensor.\n", "PUBLIC_HEADERS of module tensor"),
    ("CMake against the arrow", "src/tensor/CMakeLists.txt", "reshard_module(tensor DEPENDS base rename_map)", "tensor must not depend on rename_map"),
    ("module without a line", "src/magic/x.cc", "", "module magic is not in layering.txt"),
    ("name used twice", "tests/unit/status.cc", "", "status.cc is not unique"),
    ("a function overloads another of the unit", "src/base/x.cc", unnamed("void SizeOf() {}"), "SizeOf: functions in unnamed"),
    ("with an attribute", "src/base/x.cc", unnamed("[[nodiscard]] bool SizeOf(\n    int x) {}"), "SizeOf: functions in unnamed"),
    ("of C", "src/base/x.cc", unnamed('extern "C" void* SizeOf() {}'), "SizeOf: functions in unnamed"),
    ("a template", "src/base/x.cc", unnamed("template <size_t N = 3>\nint SizeOf() {}"), "SizeOf: functions in unnamed"),
    ("after parentheses", "src/base/x.cc", unnamed("std::function<void(int)> SizeOf() {}"), "SizeOf: functions in unnamed"),
    ("after a line's end", "src/base/x.cc", unnamed("std::string\nSizeOf() {}"), "SizeOf: functions in unnamed"),
    ("among hot modules", "src/write/x.cc", unnamed("void HotOf() {}"), "HotOf: functions in unnamed"),
    ("of a program", "tools/mount/x.cc", unnamed("void MountOf() {}"), "MountOf: functions in unnamed"),
    ("among kernels", "src/cast/x.cc", unnamed("void CastOf() {}"), None),
    ("of another unit", "src/api/x.cc", unnamed("void SizeOf() {}"), None),
    ("of the module", "src/base/x.cc", "void SizeOf() {}\n" + unnamed(""), None),
    ("a call", "src/base/x.cc", unnamed("const int kSize = SizeOf(1);\n  SizeOf(2);"), None),
    ("an end without its comment", "src/base/x.cc", "namespace {\n}\n", "does not end with"),
    ("test with a name of its own", "tests/unit/status_test.cc", "", None),
]


class CheckLayeringTest(unittest.TestCase):
    def check(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**TREE, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            return check_layering.check(pathlib.Path(folder), TABLE)

    def test_clean_tree(self):
        self.assertEqual(self.check({}), [])

    def test_planted_violations(self):
        for row, name, content, message in VIOLATIONS:
            with self.subTest(row):
                errors = self.check({name: content})
                if message is None:
                    self.assertEqual(errors, [])
                else:
                    self.assertEqual(len(errors), 1, errors)
                    self.assertIn(message, errors[0])
                    self.assertIn(name, errors[0])


if __name__ == "__main__":
    unittest.main()
