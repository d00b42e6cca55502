#!/usr/bin/env python3
"""Figures of the READMEs: their table of speed, and the picture of time and memory.

Usage: readme_figures.py [--bless]

All figures come from docs/reference/performance.md: its tables `warm` and `cold` of the suite,
and its table `memory`. --bless writes the tables between `<!-- figures -->` and
`<!-- end of figures -->`, and draws docs/images/time_and_memory.svg. Without it, a difference is
an error.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/performance.md"
PICTURE = ROOT / "docs/images/time_and_memory.svg"
BLOCK = re.compile(r"(<!-- figures -->\n).*?(<!-- end of figures -->)", re.DOTALL)

CASE = "optimizer shards merged"  # the one that is drawn
TINY = "5,000 tiny parameters"  # a row of its own

# Of a README: the head of its table, its rows, and "from A to B".
WORDS = {
    "README.md": (
        ["sources", "parameters", "`cp -r`", "MindSpore"],
        [
            ["in the page cache", "large"],
            ["in the page cache", "5,000 tiny"],
            ["on disk", "large"],
            ["on disk", "5,000 tiny"],
        ],
        "{} to {}",
    ),
    "README.zh-CN.md": (
        ["源", "参数", "`cp -r`", "MindSpore"],
        [["在页缓存", "大"], ["在页缓存", "5,000 个小参数"],
         ["在磁盘", "大"], ["在磁盘", "5,000 个小参数"]],
        "{} 到 {}",
    ),
}


def cells_of(line):
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def table_of(page, first):
    """Rows of the first table whose head begins with `first`: dictionaries by column, by case."""
    lines = iter(page.splitlines())
    head = next((cells for line in lines if (cells := cells_of(line))[0] == first), None)
    if head is None:
        raise SystemExit(f"{PAGE}: has no table {first}")
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = cells_of(line)
        if not set(cells[0]) <= {"-"}:
            rows[cells[0]] = dict(zip(head[1:], cells[1:]))
    return rows


def span(rows, column, digits, words):
    values = [float(row[column]) for row in rows]
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return low if low == high else words.format(low, high)


def speed_table(page, head, labels, words):
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    labels = iter(labels)
    for cache in ("warm", "cold"):
        rows = table_of(page, cache)
        for chosen in ([row for case, row in rows.items() if case != TINY], [rows[TINY]]):
            cells = [*next(labels), span(chosen, "times cp", 2, words), span(chosen, "times MindSpore", 0, words)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


BARS = (("reshard", "#1a7f5a"), ("cp -r", "#8a8f98"), ("MindSpore", "#c2410c"))
WIDTH, HEIGHT, LEFT, LONGEST = 760, 190, 92, 180


def panel(x, title, values, unit):
    """One kind of figure: a bar for each program."""
    largest = max(value for value, _ in values)
    out = [f'<text x="{x}" y="54" class="title">{title}</text>']
    for i, ((name, colour), (value, text)) in enumerate(zip(BARS, values)):
        y = 72 + 34 * i
        length = max(2, round(LONGEST * value / largest))
        out.append(f'<text x="{x + LEFT - 10}" y="{y + 15}" text-anchor="end">{name}</text>')
        out.append(f'<rect x="{x + LEFT}" y="{y}" width="{length}" height="21" rx="2" fill="{colour}"/>')
        out.append(f'<text x="{x + LEFT + length + 8}" y="{y + 15}" class="figure">{text} {unit}</text>')
    return out


def picture(page):
    time = table_of(page, "warm")[CASE]
    seconds = float(time["s"])
    times = [seconds, seconds * float(time["times cp"]), seconds * float(time["times MindSpore"])]
    memory = [float(table_of(page, "memory, MiB")[CASE][name]) for name, _ in BARS]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Time and memory of one conversion">',
        "<style>text{font:14px sans-serif;fill:#24292f}.title,.figure{font-weight:bold}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        '<text x="20" y="26">Optimizer shards of a 1 GiB checkpoint merged; 2 cores, sources in the page cache</text>',
        *panel(20, "Time", [(value, f"{value:.1f}") for value in times], "s"),
        *panel(395, "Memory that the program allocates",
               [(value, f"{value:,.0f}" if value >= 1 else f"{value:.1f}") for value in memory], "MiB"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bless", action="store_true")
    arguments = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    wanted = {PICTURE: picture(page)}
    for name, words in WORDS.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        if not BLOCK.search(text):
            raise SystemExit(f"{name}: has no block of figures")
        table = speed_table(page, *words)
        wanted[ROOT / name] = BLOCK.sub(lambda found, table=table: found[1] + "\n" + table + "\n" + found[2], text)
    errors = 0
    for path, text in wanted.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments.bless:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            errors += 1
            print(f"{path.relative_to(ROOT)}: has other figures than docs/reference/performance.md; pass --bless")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
