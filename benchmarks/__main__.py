"""Runs the measurements, keeps them as JSON, and writes the table and the figure of the docs.

``python -m benchmarks --tasks iteration --sizes 13M --dims 6 64`` runs a part of them;
a case that is measured again replaces its earlier figures. ``--report`` alone writes the documents
anew from what was measured before.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
from typing import Any

from rich.console import Console

from benchmarks.cases import CASES, Case
from benchmarks.contestants import CONTESTANTS, HERE
from benchmarks.data import ratings_file
from benchmarks.machine import describe
from benchmarks.report import write_report
from benchmarks.worker import THREADS

RESULTS = HERE / "results.json"
MACHINE_TASKS = ("limits", "reading")


def environment() -> dict[str, str]:
    """All libraries get as many threads, by whatever variable they look at."""
    names = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "RAYON_NUM", "LK_NUM", "LK_NUM_BACKEND")
    return os.environ | {f"{name}_THREADS": str(THREADS) for name in (*names, "POLARS_MAX")}


def measure(case: Case, name: str) -> dict[str, Any]:
    """One contestant's figures."""
    contestant = CONTESTANTS[name]
    arguments = {
        "path": str(ratings_file(case.size, case.part, case.suffix)),
        "test": str(ratings_file(case.size, "test")) if case.task == "quality" else "",
        "dims": case.dims(name),
        "options": contestant.options,
        "size": case.amount(name, sampled=contestant.sampled),
    }
    command = [contestant.python(), HERE / "worker.py", contestant.adapter, case.task]
    return run([*map(str, command), json.dumps(arguments)])


def run(command: list[str]) -> dict[str, Any]:
    """The last line that a command prints, as JSON; of one that fails, its error."""
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, cwd=HERE.parent
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def keep(name: str, result: dict[str, Any]) -> None:
    """Adds one measurement to those kept, with the machine and the day."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    results[name] = {"day": today, "machine": describe(), **result}
    RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    tasks = [*dict.fromkeys(case.task for case in CASES), *MACHINE_TASKS]
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--sizes", nargs="+", choices={case.size for case in CASES})
    parser.add_argument("--dims", nargs="+", type=int)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS)
    parser.add_argument("--report", action="store_true", help="write the documents, no more")
    return parser.parse_args()


def main() -> None:
    """Runs what was asked for."""
    console = Console()
    asked = parsed()
    if not asked.report:
        for task in MACHINE_TASKS:
            if task in asked.tasks:
                keep(task, run([sys.executable, "-m", "benchmarks.machine", task]))
        for case in CASES:
            if (
                case.task not in asked.tasks
                or (asked.sizes and case.size not in asked.sizes)
                or (asked.dims and case.dimension not in asked.dims)
            ):
                continue
            figures = {}
            for name in case.contestants:
                if not asked.contestants or name in asked.contestants:
                    with console.status(f"{case.name}: {name}"):
                        figures[name] = measure(case, name)
                    console.print(f"{case.name}: {name}: {figures[name]}")
                    keep(case.name, {"figures": figures})
    write_report(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
