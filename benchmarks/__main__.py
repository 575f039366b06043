"""Runs every measurement, each in a process of its own, and prints the ratios that matter."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.data import ratings_file
from benchmarks.measure import MEASUREMENTS, THREADS

HERE = Path(__file__).parent
LENSKIT_VENV = HERE / ".venv-lenskit"
ENVIRONMENT = os.environ | {
    "LK_NUM_THREADS": str(THREADS),
    "OMP_NUM_THREADS": str(THREADS),
    "OPENBLAS_NUM_THREADS": str(THREADS),
    "LK_NUM_BACKEND_THREADS": str(THREADS),
}
Result = dict[str, float]


def run(*command: object) -> Result:
    """The last line that a command prints, as JSON."""
    done = subprocess.run(
        list(map(str, command)), env=ENVIRONMENT, stdout=subprocess.PIPE, check=True, text=True
    )
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def lenskit(dimension: int, epochs: int) -> Result:
    """LensKit in a virtual environment of its own, made at the first run."""
    python = LENSKIT_VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", LENSKIT_VENV], check=True)
        # torch 2.13.0 is asked for by number: an open range takes a build of several gigabytes.
        requirements = ["torch==2.13.0", "lenskit==2025.8.1"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    return run(python, HERE / "peers" / "lenskit_als.py", ratings_file(), dimension, epochs)


def main() -> None:
    """Prints the table."""
    console = Console()
    results: dict[str, Result] = {}
    for name in MEASUREMENTS:
        with console.status(f"measuring {name}"):
            results[name] = run(sys.executable, "-m", "benchmarks.measure", name)
        console.print(f"{name}: {results[name]}")
    with console.status("measuring LensKit"):
        peers = {6: lenskit(6, 10), 64: lenskit(64, 2)}
    console.print(f"LensKit: {peers}")

    seconds = {name: result.get("seconds", 0.0) for name, result in results.items()}
    table = Table("13 M ratings, two threads", "measured", "to reach")

    def ratio(what: str, value: float, bar: str) -> None:
        table.add_row(what, f"{value:.2f}", bar)

    for name in ("plain-6", "padded-6", "projected-6", "sampled-6", "plain-64", "projected-64"):
        table.add_row(f"{name}, s an iteration", f"{seconds[name]:.4f}", "")
    ratio("LensKit / plain, d = 6", peers[6]["seconds"] / seconds["plain-6"], ">= 5.2")
    ratio("LensKit / plain, d = 64", peers[64]["seconds"] / seconds["plain-64"], ">= 2.96")
    ratio("projected / plain, d = 6", seconds["projected-6"] / seconds["plain-6"], "<= 1.3")
    ratio("projected / plain, d = 64", seconds["projected-64"] / seconds["plain-64"], "<= 1.0")
    ratio("sampled / exact projections", seconds["sampled-6"] / seconds["projected-6"], ">= 1.0")
    reading = results["reading"]
    ratio("frame to views / read_csv, 25 M rows", reading["views"] / reading["read_csv"], "<= 3")
    ratio("peak of a fit, bytes a rating", results["memory"]["bytes_a_rating"], "<= 40")
    console.print(table)


if __name__ == "__main__":
    main()
