"""The keywords of calls are those of the option table: between the marks below, python/reshard/_calls.py
has what this file writes there.

    python tests/python/keywords_test.py --bless
"""

import pathlib
import re
import sys

from reshard import _reshard

CALLS = pathlib.Path(__file__).parents[2] / "python" / "reshard" / "_calls.py"
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


def keywords_of(call):
    """The lines of a signature. The files of ranks are the argument `source`."""
    options = [o for o in _reshard.options() if call in o["calls"] and o["type"] != "rank_files"]
    return "".join(
        f"    {o['word']}: {type_of(o)}{'' if o['required'] else ' | None = None'},\n" for o in options
    )


def written(text):
    return BLOCK.sub(
        lambda block: MARK.format(call=block[1]) + keywords_of(block[1]) + END,
        text,
    )


def test_signatures_have_the_options_of_the_table():
    text = CALLS.read_text(encoding="utf-8")
    marked = [block[1] for block in BLOCK.finditer(text)]
    calls = {call for option in _reshard.options() for call in option["calls"]}
    assert sorted(marked) == sorted(calls)
    assert written(text) == text


if __name__ == "__main__" and sys.argv[1:] == ["--bless"]:
    CALLS.write_text(written(CALLS.read_text(encoding="utf-8")), encoding="utf-8")
