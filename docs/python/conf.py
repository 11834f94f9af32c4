"""How Sphinx builds the documentation. It reads nothing from the network."""

import os
import sys
import warnings
from pathlib import Path

# Set before anything imports scikit-learn: trees and processes of the examples are small, and their threads cost more than
# they bring on a busy computer.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import relvec
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "relvec"
author = copyright = "the relvec authors"
release = version = relvec.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_parser",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "browser_model",
    "command_reference",
    "repository_pages",
    "shell_blocks",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext"]
default_role = "code"

# Docstrings say the types already, and more: shapes and defaults.
autodoc_typehints = "none"
# The template of a class chooses the members; numpydoc would add all of scikit-learn's.
numpydoc_show_class_members = False

# Pages of docs/ that are included have anchors for their headings, and may begin below the first level.
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

sphinx_gallery_conf = {
    "examples_dirs": ["../../python/examples", "../../python/tutorials"],
    "gallery_dirs": ["examples", "tutorials/python"],
    # The tutorials have no prefix in their names, and all of them run.
    "filename_pattern": r"(/plot_|/tutorials/)",
    "within_subsection_order": "gallery_order.SortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("relvec",),
    # Sharp on screens with two pixels for one.
    "image_srcset": ["2x"],
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
html_static_path = ["_static", "generated/browser"]
# A page that predicts in the browser needs it: `cargo xtask vendor` downloads it. Without it the page has a note in its place.
onnxruntime_web = Path(__file__).parents[2] / "target" / "onnxruntime-web"
if onnxruntime_web.is_dir():
    html_static_path.append(str(onnxruntime_web))
    # Sphinx defines the name.
    tags.add("onnxruntime_web")  # noqa: F821
else:
    print("onnxruntime-web is missing: the page how-to/browser is built without its model (cargo xtask vendor)")
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
# Pages that stand alone have no list of neighbours at the left.
html_sidebars = {"index": [], "install": [], "search": []}
# Light or dark, as the system of the reader says.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"image_light": "_static/icon.svg", "image_dark": "_static/icon.svg", "text": html_title},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# On the web there are several versions side by side, with a menu (.github/workflows/site.yml). A folder of pages has one, and
# asks no server.
if site := os.environ.get("RELVEC_SITE"):
    released = os.environ.get("GITHUB_REF", "").startswith("refs/tags/")
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/switcher.json", "version_match": release if released else "dev"},
        "check_switcher": False,
        "show_version_warning_banner": True,
        "navbar_end": ["version-switcher", "theme-switcher"],
    }
