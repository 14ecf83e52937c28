"""Runs the Python blocks of a page in order in one session and holds what they print against the page:
check_pages.py PAGE...

A block ```text after a block ```python is its output. Where the page says that numbers may differ between processors,
so may these: numbers are compared to 5 %, but where the line names an agent that learned on this machine.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LEARNED = re.compile(r"\bppo\b")


def differs(printed: str, shown: str) -> bool:
    """Returns true if a printed line differs from the line of the page."""
    if LEARNED.search(shown):
        return not LEARNED.search(printed)
    if NUMBER.split(printed) != NUMBER.split(shown):
        return True
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return any(abs(float(a) - float(b)) > 0.05 * max(1.0, abs(float(b))) for a, b in pairs)


def check(page: Path) -> int:
    """Runs a page, and returns how many of its outputs were compared."""
    session: dict[str, object] = {"__name__": "__page__"}
    printed, compared = "", 0
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(page), "exec"), session)  # noqa: S102
            printed = out.getvalue()
        elif kind == "text" and printed:
            lines = zip(printed.splitlines(), text.splitlines(), strict=True)
            for line, shown in lines:
                if differs(line.rstrip(), shown.rstrip()):
                    sys.exit(f"{page}: shows\n  {shown}\nbut prints\n  {line}")
            printed, compared = "", compared + 1
        elif kind != "text":
            printed = ""
    return compared


for name in sys.argv[1:]:
    print(f"{name}: {check(Path(name))} outputs as shown")
