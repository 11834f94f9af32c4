"""The command ``relvec``, as the wheel installs it."""

import signal
import sys

from . import _core


def main() -> int:
    """Run the command line and return its exit code."""
    # Python's own handler would delay Ctrl-C until Rust returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["relvec", *sys.argv[1:]])
