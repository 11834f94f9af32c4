"""Set before anything imports scipy."""

import os

# Without it scikit-learn skips its array-API checks.
os.environ["SCIPY_ARRAY_API"] = "1"
