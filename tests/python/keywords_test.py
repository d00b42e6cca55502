"""The keywords of calls are those of the option table: between the marks below, _calls.py and ray.py of
python/reshard have what this file writes there.

    python tests/python/keywords_test.py --bless
"""

import pathlib
import re
import sys
import typing

from reshard import _paths, _reshard

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "reshard"
# The files, and the keywords that their calls do not have.
FILES = {PACKAGE / "_calls.py": (), PACKAGE / "ray.py": ("shard",)}
MARK = "    # Options of {call}, written by tests/python/keywords_test.py --bless.\n"
END = "    # Its own.\n"
BLOCK = re.compile(re.escape(MARK).replace(r"\{call\}", r"(\w+)") + "(.*?)" + re.escape(END), re.S)

# What a value may be, by the type of the option; of words, and with words.
TYPES = {
    "switch": "bool",
    "text": "str",
    "texts": "Texts",
    "file": "StrPath",
    "files": "StrPath | Iterable[StrPath]",
    "ranks": "Ranks",
    "size": "Size",
    "decimal_size": "Size",
    "parameter_count": "str",
    "seconds": "int",
    "number": "int",
    "count": "int",
    "counts": "Iterable[int]",
    "switch_or_count": "bool | int",
    "switch_or_file": "bool | StrPath",
    "share": "Shard",
    "io": "str",
    "casts": "Casts",
    "renames": "NameMap",
    "key_file": "StrPath",
    "key_variable": "str",
}


def type_of(option):
    literal = "Literal[{}]".format(", ".join(f'"{word}"' for word in option["words"] if word != "true"))
    of_words = {"word": literal, "switch_or_word": f"bool | {literal}"}
    return of_words.get(option["type"]) or TYPES[option["type"]]


def keywords_of(call, without):
    """The lines of a signature. The files of ranks are the argument `source`."""
    options = [
        o
        for o in _reshard.options()
        if call in o["calls"] and o["type"] != "rank_files" and o["word"] not in without
    ]
    return "".join(
        f"    {o['word']}: {type_of(o)}{'' if o['required'] else ' | None = None'},\n" for o in options
    )


def written(text, without):
    return BLOCK.sub(
        lambda block: MARK.format(call=block[1]) + keywords_of(block[1], without) + END,
        text,
    )


def test_signatures_have_the_options_of_the_table():
    marked = []
    for file, without in FILES.items():
        text = file.read_text(encoding="utf-8")
        marked.append([block[1] for block in BLOCK.finditer(text)])
        assert written(text, without) == text
    calls = {call for option in _reshard.options() for call in option["calls"]}
    assert sorted(marked[0]) == sorted(calls) and marked[1] == ["convert"]


def test_the_kinds_of_sources_are_those_of_the_table():
    (words,) = {tuple(o["words"]) for o in _reshard.options() if o["word"] == "src_format"}
    assert words == typing.get_args(_paths.SourceFormat)


if __name__ == "__main__" and sys.argv[1:] == ["--bless"]:
    for file, without in FILES.items():
        file.write_text(written(file.read_text(encoding="utf-8"), without), encoding="utf-8")
