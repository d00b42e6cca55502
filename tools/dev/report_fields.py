#!/usr/bin/env python3
"""Checks that python/reshard/_fields.py has the fields of src/frontend/report_fields.cc.

Usage: report_fields.py [--bless]. `reshard` has to be importable from the build folder. --bless
writes the file. Exits 1 if it differs.
"""

import pathlib
import re
import sys

from reshard import _reshard

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/reshard"
HEAD = '''"""The fields of results. tools/dev/report_fields.py makes this file of those that
src/frontend/report_fields.cc says; do not edit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._results import Report, Result

if TYPE_CHECKING:
    from ._reports import {imports}

__all__ = [
{all}
]
'''


def fields_file(classes):
    """The file's text. A class that _reports.py adds methods to has another name here."""
    with_methods = set(
        re.findall(r"class (\w+)\(_fields\.\1Fields\)", (PACKAGE / "_reports.py").read_text())
    )
    parts = []
    named = set()
    known = {"": {}, "Report": {}}
    for name, base, words, fields in classes:
        known[name] = {**known[base], **{field: True for field, _, _ in fields}}
        lines = [f'    """{words}"""\n'] if words else []
        for field, kind, may_lack in fields:
            if field in known[base]:
                continue
            named |= with_methods & set(re.findall(r"\w+", kind))
            lines.append(f"    {field}: {kind}{' | None = None' if may_lack else ''}")
        own_name = f"{name}Fields" if name in with_methods else name
        parts.append(f"\n\nclass {own_name}({base or 'Result'}):\n" + "\n".join(lines) + "\n")
    public = sorted(set(known) - with_methods - {"", "Report"})
    return HEAD.format(
        imports=", ".join(sorted(named)), all="\n".join(f'    "{name}",' for name in public)
    ) + "".join(parts)


def main():
    path = PACKAGE / "_fields.py"
    text = fields_file(_reshard.report_classes())
    if "--bless" in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} is not current: run {sys.argv[0]} --bless with the package that was built")


if __name__ == "__main__":
    main()
