"""How Sphinx builds the site: `make docs`. It needs no network, and every warning is an error."""

from __future__ import annotations

import sys
from importlib.metadata import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "temporaldp"
author = "The temporaldp authors"
project_copyright = "the temporaldp authors; Apache-2.0"
installed = metadata("temporaldp")
release = version = installed["Version"]

extensions = [
    "myst_nb",  # pages in Markdown, notebooks among them
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",  # tabs
    "mathml",  # these four are in docs/_extensions
    "public_names",
    "sections",
    "short_cells",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
nitpicky = False
language = "en"
highlight_options = {language: {"stripnl": True} for language in ("python", "pycon", "python3", "ipython3")}

# Markdown. Anchors of headings are as GitHub makes them, so that links work in both places.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 4

# Notebooks are run anew where their code changed, and a cell that fails fails the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

# Docstrings. Types stand in the text; the signature shows names and defaults only.
default_role = "literal"  # and public_names makes a link of what is a public name
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"temporaldp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": [], "navigation_with_keys": True}
# Every page links to its source where pyproject.toml has the address: Repository in [project.urls].
urls = dict(entry.split(", ", 1) for entry in installed.get_all("Project-URL") or ())
if "Repository" in urls:
    html_theme_options |= {
        "source_repository": urls["Repository"],
        "source_branch": "main",
        "source_directory": "docs/",
        "top_of_page_buttons": ["view"],
    }
smartquotes = False  # commands are copied from pages
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
