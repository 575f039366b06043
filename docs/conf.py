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
    "sphinx.ext.mathjax",
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

html_theme = "pydata_sphinx_theme"
html_title = "mixedals"
html_static_path: list[str] = []
html_show_copyright = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "footer_start": [],
    "footer_end": [],
}
exclude_patterns = ["_build", "notes"]
