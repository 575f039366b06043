"""How the documentation is built: ``make docs``."""

from importlib.metadata import version as installed_version

project = "mixedals"
author = "the mixedals developers"
copyright = "the mixedals developers"  # noqa: A001 - the name that Sphinx wants
version = release = installed_version("mixedals")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
nitpicky = False

# All pages in one sidebar, also on phones; the pages fit into one level.
html_theme = "furo"
html_title = "mixedals"
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
exclude_patterns = ["_build", "notes"]
