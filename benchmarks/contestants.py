"""The libraries that are measured, each in a virtual environment of its own."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLES = ("pandas", "pyarrow", "polars")


@dataclass(frozen=True)
class Contestant:
    """A library with some options.

    Attributes
    ----------
    adapter
        Its module in ``adapters``.
    environment
        Name of its virtual environment; None for that of mixedals.
    requirements
        What is installed there.
    options
        For the adapter's ``fit``.
    sampled
        It recommends to one user at a time: some hundred of them are enough to tell how fast.
    """

    adapter: str
    environment: str | None = None
    requirements: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    sampled: bool = False

    def python(self) -> Path:
        """The interpreter of its environment, which is made where there is none."""
        if self.environment is None:
            return Path(sys.executable)
        folder = HERE / ".venvs" / self.environment
        ready = folder / "ready"
        python = folder / "bin" / "python"
        if not ready.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            install = [python, "-m", "pip", "install", "--quiet"]
            subprocess.run([*install, *self.requirements, *TABLES], check=True)
            ready.touch()
        return python


def _ours(**options: Any) -> Contestant:
    return Contestant("mixed", options=options)


def _cmfrec(**options: Any) -> Contestant:
    return Contestant("cmf", "cmfrec", ("cmfrec", "threadpoolctl"), options, sampled=True)


def _implicit(**options: Any) -> Contestant:
    return Contestant("implicit_als", "implicit", ("implicit",), options)


CONTESTANTS = {
    "mixedals": _ours(reg=3.0),
    "mixedals, padded": _ours(projection="padded"),
    "mixedals, projected": _ours(projection="learned"),
    "mixedals, sampled": _ours(projection="learned", projection_sampling="paper"),
    "cmfrec, Cholesky": _cmfrec(use_cg=False, lambda_=3.0),
    "cmfrec, CG": _cmfrec(use_cg=True, lambda_=3.0),
    # torch by number: an open range takes a build of several gigabytes.
    "LensKit": Contestant(
        "lenskit_als", "lenskit", ("torch==2.13.0", "lenskit==2025.8.1"),
        {"regularization": 0.1}, sampled=True,
    ),
    "implicit, Cholesky": _implicit(use_cg=False),
    "implicit, CG": _implicit(use_cg=True),
    "Spark MLlib": Contestant("spark_als", "spark", ("pyspark",), {"regParam": 0.05}),
    "libmf": Contestant(
        "mf", "libmf", ("libmf", "setuptools"), {"lambda_p2": 0.05, "lambda_q2": 0.05}
    ),
}  # fmt: skip
LEAST_SQUARES = ("mixedals", "cmfrec, Cholesky", "cmfrec, CG", "LensKit", "Spark MLlib")
EXPLICIT = (*LEAST_SQUARES, "libmf")
ALL = (*EXPLICIT, "implicit, Cholesky", "implicit, CG")
MIXED_MODELS = ("mixedals, padded", "mixedals, projected")
