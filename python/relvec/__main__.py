"""``python -m relvec`` is the command ``relvec``."""

import sys

from ._command import main

sys.exit(main())
