"""Results in words: a line for `repr`, a screen for `str`, tables for notebooks. One schema of
fields serves all results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _modules
from ._guards import is_mapping, is_tuple
from ._reports import size_in_words

COLUMNS = 80
LINES = 23  # of a screen of 24 lines, below the prompt
# Rows of a table in a notebook.
MOST_ROWS = 20

_LEAST_ROWS = 2  # of a table on a screen, where there are more
_CELL = 34
_LISTED = 6  # numbers or texts that a cell lists


def _is_result(value: Any) -> bool:
    return hasattr(value, "_types")


def _are_results(value: Any) -> bool:
    """Whether the value is a table: a tuple of results, or results by name."""
    if is_mapping(value):
        value = tuple(value.values())
    return is_tuple(value) and bool(value) and all(map(_is_result, value))


def _fields(result: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(result, name)) for name in result.__match_args__]


def _is_bytes(name: str) -> bool:
    parts = name.split("_")
    return bool({"bytes", "memory", "space", "peak"} & set(parts)) or (
        parts[-1] == "size" and parts[0] in ("size", "expected", "found")
    )


def _cut(text: str, columns: int) -> str:
    """The text, without its middle if it is longer; a path without its beginning."""
    if len(text) <= columns:
        return text
    head = 0 if "/" in text else (columns - 3) // 2
    return f"{text[:head]}...{text[len(text) - (columns - 3 - head):]}"


def _line_of(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _words(name: str, value: Any) -> str:
    """A value in a few words."""
    if _are_results(value):
        return str(len(value))
    if _is_result(value):
        found = [(field, _words(field, member)) for field, member in _informative(value)]
        return ", ".join(f"{field} {words}" for field, words in found if words)
    if is_mapping(value):
        return str(len(value))
    if is_tuple(value):
        some = ", ".join(_words(name, member) for member in value[:_LISTED])
        more = f", ... ({len(value)})" if len(value) > _LISTED else ""
        return f"[{some}{more}]" if name.endswith("shape") else some + more
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool) and _is_bytes(name):
        return size_in_words(value)
    return _line_of(str(value))


def _informative(result: Any) -> list[tuple[str, Any]]:
    """The fields without the zeros, the empty ones and those without a value."""
    return [
        (name, value)
        for name, value in _fields(result)
        if isinstance(value, bool) or (value is not None and value not in (0, (), "", {}))
    ]


class _Table(NamedTuple):
    name: str
    head: list[str]
    rows: list[list[str]]  # not more than a notebook shows
    total: int


class _Parts(NamedTuple):
    facts: list[tuple[str, str]]
    texts: list[tuple[str, str]]  # warnings, notes and errors
    tables: list[_Table]


def _is_comparison(value: Any) -> bool:
    return is_tuple(value) and hasattr(value[0], "relation")


def _table(name: str, value: Any) -> _Table:
    if _is_comparison(value):  # the news first
        value = sorted(value, key=lambda row: row.relation == "equal")
    keys = list(value)[:MOST_ROWS] if is_mapping(value) else []
    rows = [value[key] for key in keys] if keys else value[:MOST_ROWS]
    head = list(rows[0].__match_args__)
    if _is_result(getattr(rows[0], head[-1])):  # a nested result is too wide for a cell
        head.pop()
    cells = [[_words(field, getattr(row, field)) for field in head] for row in rows]
    if keys:
        head = ["", *head]
        cells = [[str(key), *line] for key, line in zip(keys, cells)]
    return _Table(name, head, cells, len(value))


def _text_of(item: Any) -> str:
    return _line_of(item.message if _is_result(item) else item)


def _parts(result: Any, prefix: str = "") -> _Parts:
    parts = _Parts([], [], [])
    for name, value in _informative(result):
        full = prefix + name
        if name in ("warnings", "notes", "errors"):
            parts.texts.extend((full[:-1], _text_of(item)) for item in value)
        elif _are_results(value):
            if _is_comparison(value):
                counts = Counter(row.relation for row in value).items()
                words = ", ".join(f"{count} {relation}" for relation, count in counts)
                parts.facts.append((full, words))
            parts.tables.append(_table(full, value))
        else:
            if words := _words(name, value):
                parts.facts.append((full, words))
            if _is_result(value):
                parts.tables.extend(_parts(value, f"{full}.").tables)
    return parts


def line(result: Any) -> str:
    """The result in a line of a terminal: values as in Python, tables and lists as counts."""
    words: list[str] = []
    room = COLUMNS - len(type(result).__qualname__) - len("(, ...)")
    for name, value in _fields(result):
        is_list = is_tuple(value) or is_mapping(value)
        if _are_results(value) or (is_list and len(repr(value)) > _CELL):
            word = f"{name}=<{len(value)}>"
        elif _is_result(value):
            word = f"{name}={type(value).__qualname__}(...)"
        else:
            shown = _cut(value, _CELL) if isinstance(value, str) else value
            word = f"{name}={shown!r}"
        room -= len(word) + 2
        if room < 0 and words:
            words.append("...")
            break
        words.append(word)
    return f"{type(result).__qualname__}({', '.join(words)})"


def _in_columns(table: _Table, rows: int) -> Iterable[str]:
    yield f"{table.name}: {table.total}"
    shown = [[_cut(cell, _CELL) for cell in row] for row in [table.head, *table.rows[:rows]]]
    widths = [max(map(len, column)) for column in zip(*shown)]
    for row in shown:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths))
        yield ("  " + cells)[:COLUMNS].rstrip()
    if table.total > len(shown) - 1:
        yield f"  and {table.total - len(shown) + 1} more"


def screen(result: Any) -> str:
    """The result in at most 23 lines of 80 columns."""
    parts = _parts(result)
    lines = [type(result).__qualname__]
    width = max((len(name) for name, _ in parts.facts), default=0)
    for name, text in parts.facts:
        lines.append(f"  {name.ljust(width)}  {_cut(text, COLUMNS - width - 4)}")
    wrap = _modules.load("textwrap").wrap
    for name, text in parts.texts:
        lines += wrap(f"{name}: {text}", COLUMNS, initial_indent="  ", subsequent_indent="    ")
    for place, table in enumerate(parts.tables):
        # A heading, the head and a line for more rows; the tables behind get the rest.
        room = (LINES - len(lines)) // (len(parts.tables) - place) - 3
        if room >= table.total - 1:
            room = table.total
        lines += _in_columns(table, max(room, min(_LEAST_ROWS, table.total)))
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"  and {len(lines) - LINES + 1} more lines"]
    return "\n".join(lines)


def _rows(cell: str, rows: Iterable[Iterable[str]]) -> str:
    escape = _modules.load("html").escape
    return "".join(
        "<tr>" + "".join(f"<{cell}>{escape(text)}</{cell}>" for text in row) + "</tr>"
        for row in rows
    )


def table(head: list[str], rows: list[list[str]], total: int) -> str:
    """Rows as HTML, with the number of the rows that are left out."""
    more = f"<p>and {total - len(rows)} more</p>" if total > len(rows) else ""
    top = f"<thead>{_rows('th', [head])}</thead>" if head else ""
    return f"<table>{top}<tbody>{_rows('td', rows)}</tbody></table>{more}"


def page(result: Any) -> str:
    """The result as tables of HTML."""
    escape = _modules.load("html").escape
    parts = _parts(result)
    facts = [[name, text] for name, text in [*parts.facts, *parts.texts]]
    return f"<p><b>{type(result).__qualname__}</b></p>{table([], facts, len(facts))}" + "".join(
        f"<p>{escape(found.name)}</p>{table(found.head, found.rows, found.total)}"
        for found in parts.tables
    )
