"""Fails where a kernel needs more instructions than it did: ``python -m benchmarks.instructions``.

Seconds vary on a busy machine, instructions hardly do. valgrind counts those of each kernel of
``instructions.cpp`` and they are compared with ``instructions.json``, which ``--update`` writes
anew. Another compiler makes other instructions: there is nothing to compare then.
"""

import argparse
import json
import os
import re
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE.parent / "src" / "kernels"
COUNTS = HERE / "instructions.json"
WORSE = 1.05

# As in CMakeLists.txt; the highest level that valgrind knows.
FLAGS = [
    "-std=c++20", "-O3", "-march=x86-64-v3", "-ffp-contract=fast", "-fno-math-errno",
    "-DEIGEN_DONT_PARALLELIZE", "-DEIGEN_NO_AUTOMATIC_RESIZING", "-pthread",
]  # fmt: skip
COMPILER = os.environ.get("CXX", "c++")

# Counting starts and ends with these: what prepares their input isn't counted.
ENTRIES = ("solve_rows", "projection_sums", "projection_product", "top_k", "transpose")


def output(*command: str | Path) -> str:
    return subprocess.run(
        list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ).stdout  # fmt: skip


def build(folder: Path) -> Path:
    """The program, from the kernels' sources."""
    eigen = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "include" / "eigen3"
    includes = ["-isystem", eigen, "-I", KERNELS]

    def compiled(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        output(COMPILER, *FLAGS, *includes, "-c", source, "-o", target)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, [*KERNELS.glob("*.cpp"), HERE / "instructions.cpp"]))
    program = folder / "instructions"
    output(COMPILER, "-pthread", *objects, "-o", program)
    return program


def instructions(program: Path, kernel: str) -> int:
    toggles = [f"--toggle-collect=mixedals::{entry}(*" for entry in ENTRIES]
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *toggles]
    found = re.search(r"Collected : (\d+)", output(*tool, program, kernel))
    if not found or not int(found[1]):
        raise RuntimeError(f"valgrind counted nothing in {kernel}")
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep today's counts")
    update: bool = parser.parse_args().update
    # Without the name that it was called by.
    compiler = output(COMPILER, "--version").splitlines()[0].partition(" ")[2]
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    if not update and known["compiler"] != compiler:
        print(f"skipped: the counts are of {known['compiler']}, here is {compiler}")
        return
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        counts = {name: instructions(program, name) for name in output(program).splitlines()}
    if update:
        COUNTS.write_text(json.dumps({"compiler": compiler, "counts": counts}, indent=1) + "\n")
        return
    slower = []
    for name, count in counts.items():
        change = count / known["counts"][name]
        print(f"{name}: {count:,} instructions, {change - 1:+.1%}")
        if change > WORSE:
            slower.append(name)
    if slower:
        raise SystemExit(f"slower by more than {WORSE - 1:.0%}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
