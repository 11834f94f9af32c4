"""How Sphinx builds the Python documentation. It reads nothing from the network."""

import warnings

import relvec
from sklearn.exceptions import ConvergenceWarning

project = "relvec"
author = copyright = "the relvec authors"
release = version = relvec.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery"]
templates_path = ["_templates"]
default_role = "code"

# Docstrings say the types already, and more: shapes and defaults.
autodoc_typehints = "none"
# The template of a class chooses the members; numpydoc would add all of scikit-learn's.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../../python/examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("relvec",),
    # Times differ from build to build: none is shown.
    "min_reported_time": float("inf"),
    "write_computation_times": False,
    "show_signature": False,
}
# An example whose fit does not converge, or interpolates, breaks the build.
warnings.simplefilter("error", ConvergenceWarning)
warnings.simplefilter("error", relvec.InterpolationWarning)

html_theme = "pydata_sphinx_theme"
html_title = f"relvec {release}"
html_show_sourcelink = False
# The few pages are all in the bar at the top; the list at the left would repeat it.
html_sidebars = {"**": []}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
