"""``python -m relvec`` is the command ``relvec``."""

import sys

from ._command import main

if __name__ == "__main__":
    sys.exit(main())
