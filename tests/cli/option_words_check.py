"""No message of the library names an option of the command line, and the command line has words for
each name in backticks that one has; what has a blank in it is the command of some program."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals(path):
    """The string literals of a source, those that follow one another joined."""
    lines = (line for line in path.read_text().split("\n") if not line.lstrip().startswith(("//", "#")))
    text = re.sub(r'"\s*\n\s*"', "", "\n".join(lines))
    return [match.group(1) for match in STRING.finditer(text)]


def main():
    table = literals(ROOT / "src/options/option_table.cc") + literals(ROOT / "src/frontend/option_words.cc")
    known = {text for text in table if re.fullmatch(r"[A-Za-z_.:]+(=\w*)?", text)}
    front_ends = (ROOT / "src/options", ROOT / "src/frontend")  # whose words these are
    sources = sorted(
        p for d in ("src", "format", "include") for p in (ROOT / d).rglob("*.[ch]*") if p.parent not in front_ends
    )
    wrong = []
    names = 0
    for path in sources:
        for text in literals(path):
            if re.search(r"(^|[^\w-])--[a-z]", text):
                wrong.append(f"{path.relative_to(ROOT)}: names an option of the command line: {text}")
            for name in re.findall(r"`([^` ]+)`", text):
                names += 1
                if name not in known and name.split("=")[0] not in known:
                    wrong.append(f"{path.relative_to(ROOT)}: `{name}` is not in the option table")
    print("\n".join(wrong))
    print(f"{names} names in {len(sources)} sources")
    return 1 if wrong or names == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
