"""The command line: ``python -m bufgym eval --policy dt:alpha=8``."""

import signal
import sys

from bufgym import _native


def main() -> int:
    """Runs the command of ``sys.argv``; returns the exit code."""
    # Ctrl-C ends the work as it does for the program itself; Python would only take note of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command_line(["bufgym", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
