"""Checks of the package as users install it: ``nox``, or one of them, ``nox -s wheel-3.12``."""

import os
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"

# pyenv's own commands for the Pythons that it has work only for those that it is told to use.
PYENV = [str(path) for path in Path.home().glob(".pyenv/versions/3.*/bin")]
os.environ["PATH"] = os.pathsep.join([*PYENV, os.environ["PATH"]])

PYTHONS = ["3.11", "3.12", "3.13"]


def _install_wheel(session: nox.Session, *options: str) -> None:
    """Builds the wheel for the session's Python and installs it with the tools of the tests."""
    folder = Path(session.create_tmp())
    for old in folder.glob("*.whl"):
        old.unlink()
    session.run("uv", "build", "--quiet", "--wheel", "--python", session.python,
                "--out-dir", str(folder), external=True)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    session.log(f"built {wheel.name}")
    session.install(str(wheel), "--group", "test", *options)


def _test(session: nox.Session, *options: str) -> None:
    session.run("uv", "pip", "list", external=True)
    session.run("pytest", "--numprocesses=2", "--dist=worksteal", *options, *session.posargs)


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """The test suite against the installed wheel, with the newest dependencies."""
    _install_wheel(session)
    _test(session)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The test suite with the lowest versions of the dependencies that are allowed."""
    # Named here, as what the wheel alone asks for is not "direct".
    dependencies = nox.project.load_toml("pyproject.toml")["project"]["dependencies"]
    _install_wheel(session, "--resolution", "lowest-direct", *dependencies)
    # Old versions use what newer versions of their own dependencies warn of.
    _test(session, "-W", "default::DeprecationWarning")
