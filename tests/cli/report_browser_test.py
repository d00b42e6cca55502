#!/usr/bin/env python3
"""The page of `reshard report` in a headless Chromium: for 8 and for 1,024 ranks, light and dark.

Usage: report_browser_test.py --reshard BIN --gen BIN [--shots FOLDER]

No message in the console, no address but the page's own, no text that is cut off or written over
another, nothing wider than the window, no blank picture. --shots keeps the screenshots.
"""

import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import browser

WIDTH = 1060
MOST_ELEMENTS = 20_000
SCALE = 0.25  # of the screenshots whose pixels are looked at

# Names of texts that leave their picture, or that lie over another text.
FIND_BAD_TEXT = """
(() => {
  const bad = [];
  for (const svg of document.querySelectorAll('svg')) {
    const view = svg.viewBox.baseVal;
    const title = svg.querySelector('title').textContent;
    const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBBox()]);
    for (const [words, box] of boxes) {
      if (box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 ||
          box.y + box.height > view.height + 1) bad.push(`${title}: "${words}" is cut off`);
    }
    for (let i = 0; i < boxes.length; ++i) {
      for (let j = 0; j < i; ++j) {
        const [a, b] = [boxes[i][1], boxes[j][1]];
        const x = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
        const y = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
        // Boxes have room above and below their letters.
        if (x > 1 && y > 5) bad.push(`${title}: "${boxes[i][0]}" is over "${boxes[j][0]}"`);
      }
    }
  }
  return bad.slice(0, 20);
})()
"""

PLACES_OF_PICTURES = """
[...document.querySelectorAll('svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  return [svg.querySelector('title').textContent, box.x + scrollX, box.y + scrollY, box.width,
          box.height];
})
"""


def decode_png(data):
    """Rows of pixels of a PNG with 8 bits for each of 3 or 4 colours."""
    at = 8
    packed = b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            assert depth == 8 and colour in (2, 6)
            size = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw = zlib.decompress(packed)
    stride = width * size
    rows = []
    above = bytearray(stride)
    for y in range(height):
        kind = raw[y * (stride + 1)]
        line = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            a = line[i - size] if i >= size else 0
            b = above[i]
            if kind == 1:
                guess = a
            elif kind == 2:
                guess = b
            elif kind == 3:
                guess = (a + b) // 2
            else:
                c = above[i - size] if i >= size else 0
                guess = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + guess) & 0xFF
        above = line
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, size)])
    return rows


def check_pixels(page, scheme, problems):
    height = page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": SCALE}
    rows = decode_png(page.screenshot(clip=clip))
    bright = sum(rows[0][0]) > 3 * 128
    if bright != (scheme == "light"):
        problems.append(f"the background is {rows[0][0]}")
    for title, x, y, width, tall in page.evaluate(PLACES_OF_PICTURES):
        colours = {pixel
                   for row in rows[int(y * SCALE):int((y + tall) * SCALE)]
                   for pixel in row[int(x * SCALE):int((x + width) * SCALE)]}
        if len(colours) < 8:
            problems.append(f"{title}: only {len(colours)} colours")


def check_page(page, path, scheme):
    page.open(path, scheme, WIDTH)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    problems = page.evaluate(FIND_BAD_TEXT)
    elements = page.evaluate("document.getElementsByTagName('*').length")
    if elements > MOST_ELEMENTS:
        problems.append(f"{elements} elements")
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > WIDTH:
        problems.append(f"{wide} pixels wide")
    check_pixels(page, scheme, problems)
    problems += [f"asked for {url}" for url in page.requests() if url != path.as_uri()]
    problems += [f"console: {event}" for event in page.complaints()]
    return problems


def make_pages(arguments, folder):
    """A report of 8 ranks with a run's timeline, and one of 1,024 ranks; returns their paths."""

    def run(program, *words):
        subprocess.run([program, *map(str, words)], cwd=folder, check=True, capture_output=True,
                       timeout=600)

    model = ["--layers", "2", "--hidden", "64", "--ffn", "128", "--vocab", "256"]
    run(arguments.gen, "ckpt_8", *model, "--tp", "4", "--dp", "2")
    run(arguments.gen, "new", *model, "--tp", "2", "--pp", "2", "--strategy-only")
    run(arguments.reshard, "convert", "ckpt_8", "ckpt_4", "--src-strategy", "ckpt_8/strategy",
        "--dst-strategy", "new/strategy", "--report", "small.html")
    model = ["--layers", "8", "--hidden", "512", "--ffn", "1024", "--vocab", "2048",
             "--no-optimizer"]
    run(arguments.gen, "big", *model, "--tp", "32", "--dp", "32", "--sparse")
    run(arguments.gen, "new_big", *model, "--tp", "16", "--dp", "8", "--pp", "8", "--strategy-only")
    run(arguments.reshard, "report", "big", "--src-strategy", "big/strategy", "--dst-strategy",
        "new_big/strategy", "-o", "large.html")
    run(arguments.reshard, "report", "big", "-o", "files.html")
    return [folder / name for name in ("small.html", "large.html", "files.html")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reshard", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--gen", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    program = browser.find_browser()
    if program is None:
        print("did not run: report_browser: no chromium (tools/deps.sh browser)")
        return 0
    failed = False
    with tempfile.TemporaryDirectory(prefix="reshard_pages_") as scratch:
        pages = make_pages(arguments, pathlib.Path(scratch).resolve())
        with browser.Browser(program) as page:
            for path in pages:
                for scheme in ("light", "dark"):
                    problems = check_page(page, path, scheme)
                    for problem in problems:
                        print(f"{path.name}, {scheme}: {problem}")
                    failed = failed or bool(problems)
                    if arguments.shots:
                        page.open(path, scheme, WIDTH)
                        shot = arguments.shots / f"{path.stem}-{scheme}.png"
                        shot.write_bytes(page.screenshot())
    if not failed:
        print(f"{len(pages)} pages, light and dark")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
