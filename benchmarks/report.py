"""The documents: a Markdown table and a figure, from the measurements that were kept."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.contestants import ALL, CONTESTANTS

DOCS = Path(__file__).parents[1] / "docs"
Results = dict[str, Any]

# Of each task: the figure that is compared, what it is called, and its factor and unit.
FIGURES = {
    "iteration": ("seconds", "Seconds an iteration", 1.0),
    "memory": ("bytes", "Peak of a fit, MB beyond the ratings as the library keeps them", 1e-6),
    "recommend": ("seconds", "Microseconds a user for the ten best items not seen", 1e6),
    "file": ("seconds", "Seconds from a CSV file to a fitted model, 30 iterations", 1.0),
    "quality": ("to_error", "Seconds of a whole fit to the same held-out error", 1.0),
}


def write_report(results: Results) -> None:
    """Replaces the measured part of ``docs/benchmarks.md``, and its figure."""
    results = with_time_to_error(results)
    page = DOCS / "benchmarks.md"
    text = "\n\n".join([*tables(results), *machine_tables(results)])
    marked = re.compile(r"(<!-- measured -->\n).*(<!-- end -->)", re.DOTALL)
    page.write_text(marked.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page.read_text()))
    figure(results)


def with_time_to_error(results: Results) -> Results:
    """Adds the seconds of the first fit whose error is at most the goal.

    The goal is what all reach: the worst of the contestants' best errors, and a thousandth.
    """
    out = dict(results)
    for name, case in results.items():
        if not name.startswith("quality/"):
            continue
        figures = {who: f for who, f in case["figures"].items() if "rmse" in f}
        goal = 1.001 * max(min(f["rmse"]) for f in figures.values())
        reached = {}
        for who, f in figures.items():
            pairs = zip(f["rmse"], f["seconds"], strict=True)
            reached[who] = f | {"to_error": next(s for rmse, s in pairs if rmse <= goal)}
        out[name] = case | {"figures": reached, "goal": goal}
    return out


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def tables(results: Results) -> Iterator[str]:
    """A table a task: a line a case, a column a contestant; peers with their ratio."""
    for task, (key, title, factor) in FIGURES.items():
        cases = {n: r for n, r in results.items() if n.split("/")[0] == task}
        names = [n for n in CONTESTANTS if any(n in case["figures"] for case in cases.values())]
        if not cases:
            continue
        lines = [
            f"### {title}",
            "| ratings | d | " + " | ".join(names) + " |",
            "|---|---|" + "---|" * len(names),
        ]
        for name, case in sorted(cases.items(), key=lambda of: _order(of[0])):
            _, size, dimension = name.split("/")
            cells = [_cell(case["figures"], who, key, factor) for who in names]
            lines.append(f"| {size} | {dimension} | " + " | ".join(cells) + " |")
        yield lines[0] + "\n\n" + "\n".join(lines[1:])


def _order(name: str) -> tuple[str, float, int]:
    task, size, dimension = name.split("/")
    ratings = {"ml-1m": 1.0, "netflix-quarter": 25.0}.get(size) or float(size.removesuffix("M"))
    return task, ratings, int(dimension)


def _cell(figures: Results, who: str, key: str, factor: float) -> str:
    if who not in figures:
        return ""
    if key not in figures[who]:
        return "failed"
    value = figures[who][key]
    ratio = value / figures["mixedals"][key]
    beside = "" if who == "mixedals" else f" ({number(ratio)} x)"
    return number(value * factor) + beside


def machine_tables(results: Results) -> Iterator[str]:
    """What the half-steps reach of the machine's rates, and what reading costs."""
    if "limits" in results:
        found = results["limits"]
        yield (
            "### Against the machine\n\n"
            f"{found['machine']}, {found['day']}: it reads {found['memory'] / 1e9:.0f} GB/s from "
            f"memory, and a large matrix product makes {found['product'] / 1e9:.0f} GFLOP/s. "
            "Half-steps on 13 M ratings; the shares are of the time that the least operations, "
            "or the least bytes, would take at those rates.\n\n"
            "| half-step | seconds | one thread / two | share of the product's rate "
            "| share of the bandwidth |\n|---|---|---|---|---|\n"
            + "\n".join(
                f"| {k['kernel']} | {number(k['seconds'])} | {k['alone'] / k['seconds']:.2f} | "
                f"{k['operations']:.0%} | {k['bytes']:.0%} |"
                for k in found["half_steps"]
            )
        )
    if "reading" in results:
        found = results["reading"]
        yield (
            "### Reading\n\n25 M rows of CSV: polars alone "
            f"{found['read_csv']:.2f} s; to ratings with both compressed views "
            f"{found['views']:.2f} s, {found['views'] / found['read_csv']:.2f} times as much."
        )
    versions = {
        who: figures[who].get("version", "")
        for case in results.values()
        for figures in [case.get("figures", {})]
        for who in figures
    }
    libraries = {who.split(",")[0]: version for who, version in sorted(versions.items()) if version}
    yield "Versions: " + ", ".join(f"{who} {version}" for who, version in libraries.items()) + "."


def figure(results: Results) -> None:
    """Peers' seconds an iteration beside those of mixedals, by dimension, on 13 M ratings."""
    from matplotlib.figure import Figure

    cases = {
        int(name.split("/")[2]): case["figures"]
        for name, case in results.items()
        if name.startswith("iteration/13M/")
    }
    if len(cases) < 2:  # a line needs two points
        return
    drawing = Figure(figsize=(7, 4), layout="constrained")
    axes = drawing.subplots()
    for who in ALL:
        points = [
            (d, f[who]["seconds"]) for d, f in sorted(cases.items()) if "seconds" in f.get(who, {})
        ]
        if points:
            style = {"linewidth": 3, "color": "black"} if who == "mixedals" else {}
            axes.plot(*zip(*points, strict=True), marker="o", label=who, **style)
    axes.set(
        xscale="log", yscale="log", xlabel="dimension", ylabel="seconds an iteration",
        title="13 M ratings, two threads: lower is faster", xticks=sorted(cases),
        xticklabels=sorted(cases),
    )  # fmt: skip
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(DOCS / "benchmarks.svg")
