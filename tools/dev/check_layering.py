#!/usr/bin/env python3
"""Checks that the tree follows layering.txt: includes, CMake dependencies, public headers, names.

Usage: check_layering.py [ROOT]. Prints one line for each violation; exits 1 when there is any.
"""

import collections
import fnmatch
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
IMPLEMENTED_IN = re.compile(r"Implemented in (?:src/)?(\w+)")  # "src/base", "format/manifest"
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
TOP_FOLDERS = ("include", "src", "format", "tools", "tests", "bench", "docs", "python")
NAMED_SUFFIXES = {".h", ".cc", ".proto", ".py", ".sh", ".cmake", ".md"}
REPEATED_NAMES = {"SPEC.md", "README.md", "__init__.py", "__main__.py"}


class Layering:
    """The table: for each module those it may include, and the headers that only some may include."""

    def __init__(self, text):
        direct = {}
        self.public_only = {}  # modules to those whose other headers they may include, too
        self.restricted = []  # (pattern, modules)
        for line in text.splitlines():
            line = line.split("#")[0].strip()
            if "<-" in line:
                module, _, arrows = line.partition("<-")
                arrows, _, note = arrows.partition(",")
                direct[module.strip()] = arrows.split()
                if found := re.fullmatch(r" public headers (?:and ([\w ]+) )?only", note):
                    self.public_only[module.strip()] = set((found[1] or "").split())
            elif line:
                pattern, _, modules = line.partition("only in")
                self.restricted.append((pattern.strip().strip("<>"), modules.split()))
        self.reachable = {module: self._closure(direct, module) for module in direct}

    @staticmethod
    def _closure(direct, module):
        seen, pending = set(), [module]
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                pending.extend(direct[current])
        return seen


def module_of(path):
    """The module that a path from the root belongs to, or None."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] in ("format", "python"):
        return parts[0]
    if parts[0] in ("src", "tools") and len(parts) > 2:
        return parts[1]
    return None


def first_comment(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line)
    return "\n".join(lines)


def files_under(root, *folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path.relative_to(root).as_posix(), path


def public_headers(root, layering, errors):
    """Maps "reshard/x.h" to the module that implements it."""
    owners = {"reshard/version.h": "base"}  # made by CMake, includes no header of ours
    for name, path in files_under(root, "include", suffixes={".h"}):
        header = name.removeprefix("include/")
        found = IMPLEMENTED_IN.search(first_comment(path.read_text()))
        if not found or found[1] not in layering.reachable:
            errors.append(f"{name}: the first comment needs a line `Implemented in src/<module>`")
            continue
        owners[header] = found[1]
        folder = "format/*" if found[1] == "format" else f"src/{found[1]}"
        lists = root.glob(f"{folder}/CMakeLists.txt")
        if not any(header in re.split(r"[\s()]+", lists_file.read_text()) for lists_file in lists):
            errors.append(f"{name}: not among the PUBLIC_HEADERS of module {found[1]}")
    return owners


def check_includes(name, text, module, layering, owners, errors):
    is_public = name.startswith("include/")
    for number, line in enumerate(text.splitlines(), start=1):
        found = INCLUDE.match(line)
        if not found:
            continue
        where = f"{name}:{number}"
        included = found[2]
        fitting = [entry for entry in layering.restricted if fnmatch.fnmatch(included, entry[0])]
        if fitting:
            _, modules = max(fitting, key=lambda entry: len(entry[0]))
            if module not in modules:
                errors.append(f"{where}: <{included}> is only for {', '.join(modules)}")
        if found[1] == "<":
            continue
        if included.startswith("reshard/"):
            target = owners.get(included)
        elif is_public:
            errors.append(f"{where}: a public header includes only <...> and \"reshard/...\"")
            continue
        else:
            target = module_of(included)
            public = {*layering.public_only, *layering.public_only.get(module, ()), module}
            if module in layering.public_only and target not in public:
                errors.append(f'{where}: {module} includes of others only "reshard/..."')
                continue
        if target is None:
            errors.append(f'{where}: "{included}" is no header of a module, named from the root')
        elif target not in layering.reachable[module]:
            errors.append(f"{where}: {module} must not include {target} ({included})")


def check_cmake(root, layering, errors):
    call = re.compile(r"reshard_module\(\s*(\w+)([^)]*)\)")
    for path in sorted([*root.glob("src/*/CMakeLists.txt"), *root.glob("format/*/CMakeLists.txt")]):
        name = path.relative_to(root).as_posix()
        module = module_of(name)
        for found in call.finditer(path.read_text()):
            keyword = None
            for word in found[2].split():
                if word.isupper():
                    keyword = word
                elif keyword == "DEPENDS":
                    target = "format" if (root / "format" / word).is_dir() else word
                    if target not in layering.reachable.get(module, ()):
                        errors.append(f"{name}: {module} must not depend on {word}")


def check_names(root, errors):
    places = collections.defaultdict(list)
    for name, path in files_under(root, *TOP_FOLDERS, suffixes=NAMED_SUFFIXES):
        if path.name not in REPEATED_NAMES:
            places[path.name].append(name)
    for file_name, names in places.items():
        if len(names) > 1:
            errors.append(f"file name {file_name} is not unique: {', '.join(names)}")


def units(root):
    """Maps what is compiled together to its folders: modules, as ReshardModule.cmake has it, programs
    of tools, and what the tests share."""
    found = {name: [root / name] for name in ("python/src", "tests/fuzz", "tests/support")}
    unit = None
    for line in (root / "CMakeLists.txt").read_text().splitlines():
        if line.startswith("set(RESHARD_UNIT "):
            unit = line.split()[1].rstrip(")")
        added = re.match(r"\s*add_subdirectory\(((?:src|format|tools)/\w+)\)", line)
        if not added:
            continue
        folder = root / added[1]
        words = re.split(r"[\s()]+", (folder / "CMakeLists.txt").read_text())
        name = "hot" if "HOT" in words else "parsers" if "PARSES" in words else unit
        if added[1].startswith("tools/"):
            name = added[1]
        if "KERNELS" not in words:
            found.setdefault(name, []).append(folder)
    return found


def functions(block):
    """The names of the functions that begin in the first column."""
    for line in block.splitlines():
        line = re.sub(r"^(\[\[\w+\]\] |extern \"C\" |template <.*?> )+", "", line)
        if not re.match(r"\w", line) or re.match(r"(struct|class|enum|using|return|static_assert)\b", line):
            continue
        for call in re.finditer(r"(?:^|[ *&>])(\w+)\(", line):
            before = line[: call.start(1)]
            is_nested = before.count("<") > before.replace("->", "").count(">")
            if not is_nested and "=" not in before and call[1] not in ("decltype", "alignas"):
                yield call[1]
                break


def check_unnamed(root, errors):
    """Functions in unnamed namespaces of sources that are compiled together have names of their own."""
    for folders in units(root).values():
        places = collections.defaultdict(set)
        for path in (path for folder in folders for path in sorted(folder.glob("*.cc"))):
            text = path.read_text()
            name = path.relative_to(root).as_posix()
            blocks = UNNAMED.findall(text)
            if len(blocks) != len(re.findall(r"^namespace \{", text, re.MULTILINE)):
                errors.append(f"{name}: an unnamed namespace does not end with `}}  // namespace`")
            for function in (found for block in blocks for found in functions(block)):
                places[function].add(name)
        for function, names in sorted(places.items()):
            if len(names) > 1:
                errors.append(
                    f"{function}: functions in unnamed namespaces of {', '.join(sorted(names))} would "
                    "overload each other: they are compiled together"
                )


def check(root, table):
    """Returns the violations in the tree at `root`, one line each."""
    layering = Layering(table)
    errors = []
    owners = public_headers(root, layering, errors)
    folders = ("include", "src", "format", "tools", "python")
    for name, path in files_under(root, *folders, suffixes={".h", ".cc"}):
        module = owners.get(name.removeprefix("include/")) or module_of(name)
        if module in layering.reachable:
            check_includes(name, path.read_text(), module, layering, owners, errors)
        elif not name.startswith(("tools/", "include/")):
            errors.append(f"{name}: module {module} is not in layering.txt")
    check_cmake(root, layering, errors)
    check_names(root, errors)
    check_unnamed(root, errors)
    return errors


def main():
    here = pathlib.Path(__file__).resolve().parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here.parent.parent
    errors = check(root, (here / "layering.txt").read_text())
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
