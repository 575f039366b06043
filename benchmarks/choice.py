"""What it costs to find sizes: the parts of a choice in plain iterations of the pilot.

python -m benchmarks.choice --size 13M --dims 12 64
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.data import ratings_file
from mixedals import Interactions, MixedALS
from mixedals._threads import thread_count
from mixedals.budget import choose_sizes
from mixedals.cli.output import print_frame
from mixedals.leaveoneout import leave_one_out, on_principal_axes
from mixedals.preparation import initial_state, make_problem, mean_rating, prepare_side
from mixedals.trainer import iterate

REPEATS = 15


def seconds(parts: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each part, of repeats that take turns."""
    least = dict.fromkeys(parts, float("inf"))
    for _ in range(REPEATS):
        for name, work in parts.items():
            began = time.perf_counter()
            work()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def measured(data: Interactions, d: int) -> dict[str, float]:
    """Seconds of a plain iteration, and of the parts of a choice in such iterations."""
    estimator = MixedALS(dims=d, reg=6.0, reg_exponent=0.5)
    estimator.seed_ = 0
    users = prepare_side("users", data.user_vocabulary, data.by_user, estimator)
    items = prepare_side("items", data.item_vocabulary, data.by_item, estimator)
    problem = make_problem(users, items, estimator)
    mean = mean_rating(data.by_user)
    model = initial_state(users, items, estimator, mean, thread_count(None)).model
    for number in (1, 2):
        model, _ = iterate(model, problem, number)
    candidates = [p for p in (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128) if p <= d]
    turned = on_principal_axes(model, problem.user_ridge, problem.item_ridge)
    sides = (
        (problem.by_user, turned.items, problem.user_ridge),
        (problem.by_item, turned.users, problem.item_ridge),
    )

    def errors() -> list[NDArray[np.float64]]:
        return [leave_one_out(*side, 0.0, candidates) for side in sides]

    of_users, of_items = errors()
    budget = (len(of_users) + len(of_items)) * d // 3
    free = [0] * len(candidates)
    found = seconds(
        {
            "iteration": lambda: iterate(model, problem, 3),
            "errors": errors,
            "axes": lambda: on_principal_axes(model, problem.user_ridge, problem.item_ridge),
            "choice": lambda: choose_sizes(of_users, of_items, candidates, budget, free),
        }
    )
    plain = found.pop("iteration")
    return {"d": d, "iteration, s": plain} | {name: of / plain for name, of in found.items()}


def main() -> None:
    """Prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", default="13M")
    arguments.add_argument("--dims", type=int, nargs="+", default=[6, 12, 64])
    given = arguments.parse_args()
    data = Interactions.read(ratings_file(given.size))
    print_frame(pl.DataFrame([measured(data, d) for d in given.dims]), "In plain iterations")


if __name__ == "__main__":
    main()
