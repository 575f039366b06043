"""Sizes found by themselves against the popularity rule and plain ALS, on real ratings.

    python -m benchmarks.budgets ratings.parquet --results results.jsonl

The protocol is the paper's, and so are the counts of parameters. Every model of every method has
the same trials for its penalties, the best of which by the validation ratings is fitted with
further seeds. A fit is in the results as soon as it is done: run it again and it goes on.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl
from scipy.stats import qmc

from mixedals import BudgetSizing, Interactions, MixedALS, PopularitySizing, split_by_time
from mixedals.cli.output import print_frame
from mixedals.metrics import roc_auc
from mixedals.pilot import pilot_of
from mixedals.plan import plan
from mixedals.plots import plot_frontier, save

GAMMAS = (1.0, 0.5, 0.3, 0.2)
DIMS = (2, 3, 4, 5, 6)
SEEDS = (0, 1, 2)

Parameters = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """What is compared: a method, one of its models, and that one's parameters."""

    method: str
    size: str
    parameters: Parameters

    def key(self, trial: int, seed: int) -> str:
        """The name of a fit in the results."""
        return f"{self.method}|{self.size}|{trial}|{seed}"


class Study:
    """The models to fit to some ratings, and those that are fitted."""

    def __init__(self, data: Interactions, results: Path, trials: int) -> None:
        binary = data.binarise(at_most=2, at_least=4)
        train, validation, test = split_by_time(binary, (0.8, 0.1, 0.1))
        self.train = train.at_least(user=5, item=5)
        self.validation = validation.restrict_to(self.train)
        self.test = test.restrict_to(self.train)
        self.penalties = penalties(trials)
        self._results = results
        lines = results.read_text().splitlines() if results.exists() else []
        self.done: dict[str, Record] = {of["key"]: of for of in map(json.loads, lines)}
        self._pilot: tuple[Parameters, MixedALS] | None = None

    @cached_property
    def budgets(self) -> dict[str, int]:
        """Parameters of the popularity rule's models, and half of those of plain ALS's largest."""
        rules = {gamma: PopularitySizing(gamma) for gamma in GAMMAS}
        sizes = {
            f"gamma {gamma}": plan(MixedALS(sizing=rule, projection="padded"), self.train)
            for gamma, rule in rules.items()
        }
        half = DIMS[-1] * (self.train.n_users + self.train.n_items) // 2
        return {name: of.n_parameters for name, of in sizes.items()} | {"half of d 6": half}

    @cached_property
    def models(self) -> list[Model]:
        """All that are compared."""
        found = [Model("plain", f"d {d}", {"dims": d}) for d in DIMS]
        for kind in ("padded", "learned"):
            for gamma in GAMMAS:
                sizing: Any = PopularitySizing(gamma)
                parameters = {"sizing": sizing, "projection": kind}
                found.append(Model(f"popularity, {kind}", f"gamma {gamma}", parameters))
            for name, budget in self.budgets.items():
                sizing = BudgetSizing(parameters=budget)
                parameters = {"sizing": sizing, "projection": kind}
                found.append(Model(f"automatic, {kind}", name, parameters))
        return found

    def open(self, methods: str) -> Iterator[tuple[str, Parameters]]:
        """Fits that aren't done: first the trials of all models, then seeds of the best ones."""
        models = [model for model in self.models if model.method.startswith(methods)]
        for trial, values in enumerate(self.penalties):
            for model in models:
                if (key := model.key(trial, SEEDS[0])) not in self.done:
                    yield key, {**model.parameters, **values, "random_state": SEEDS[0]}
        for model in models:
            best = self.best_trial(model)
            for seed in SEEDS[1:]:
                if (key := model.key(best, seed)) not in self.done:
                    values = self.penalties[best]
                    yield key, {**model.parameters, **values, "random_state": seed}

    def is_tried(self, model: Model) -> bool:
        """Tells whether all trials of a model are done."""
        trials = range(len(self.penalties))
        return all(model.key(trial, SEEDS[0]) in self.done for trial in trials)

    def best_trial(self, model: Model) -> int:
        """The trial with the best metric on the validation ratings, with the first seed."""
        trials = range(len(self.penalties))
        return max(trials, key=lambda t: self.done[model.key(t, SEEDS[0])]["validation"])

    def fit(self, key: str, parameters: Parameters) -> None:
        """Fits one model, and records how good it is."""
        start = self._pilot_for(parameters)
        model = MixedALS(progress=False, **parameters)
        began = time.perf_counter()
        model.fit(self.train, validation=self.validation, start=start)
        seconds = time.perf_counter() - began
        pairs = self.test.to_frame()
        predicted = model.predict(pairs["user"], pairs["item"])
        self.done[key] = {
            "key": key,
            "n_parameters": model.n_parameters_,
            "validation": model.history_["metric"].max(),
            "test": roc_auc(pairs["rating"].to_numpy(), predicted),
            "best_iteration": model.best_iteration_,
            "seconds": seconds,
        }
        with self._results.open("a") as file:
            file.write(json.dumps(self.done[key]) + "\n")

    def _pilot_for(self, parameters: Parameters) -> MixedALS | None:
        """The pilot of a budget; budgets that follow one another share it."""
        if not isinstance(parameters.get("sizing"), BudgetSizing):
            return None
        settings = {name: parameters[name] for name in ("reg", "reg_exponent", "random_state")}
        if self._pilot is None or self._pilot[0] != settings:
            pilot: MixedALS = pilot_of(MixedALS(progress=False, **parameters))
            self._pilot = settings, pilot.fit(self.train)
        return self._pilot[1]

    def table(self) -> pl.DataFrame:
        """Mean and standard deviation over the seeds, of each model's best trial."""
        return pl.DataFrame([self._row(model) for model in self.models if self.is_tried(model)])

    def _row(self, model: Model) -> Record:
        best = self.best_trial(model)
        keys = (model.key(best, seed) for seed in SEEDS)
        runs = [self.done[key] for key in keys if key in self.done]
        tests = [run["test"] for run in runs]
        return {
            "method": model.method,
            "model": model.size,
            "parameters": runs[0]["n_parameters"],
            "test": fmean(tests),
            "deviation": stdev(tests) if len(tests) > 1 else math.nan,
            "validation": fmean(run["validation"] for run in runs),
            "seeds": len(runs),
            **self.penalties[best],
        }


def penalties(trials: int) -> list[Parameters]:
    """The trials, a power of 2 of them: the same well-spread points for every model.

    The best ``reg`` grows with ``reg_exponent``, as the penalty of most rows falls with it.
    """
    return [
        {
            "reg_exponent": round(float(e), 3),
            "reg": round(2 ** (3 * float(r) + 2 * float(e) - 0.5), 3),
            "projection_reg": round(10 ** (2 + 2 * float(b)), 1),
        }
        for e, r, b in qmc.Sobol(3, seed=0).random(trials)
    ]


def main() -> None:
    """Fits what isn't fitted yet, until the time is up, and prints the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("file", help="ratings with timestamps, as Interactions.read takes them")
    arguments.add_argument("--columns", default="user,item,rating,timestamp")
    arguments.add_argument("--results", type=Path, required=True)
    arguments.add_argument("--trials", type=int, default=16, help="a power of 2")
    arguments.add_argument("--methods", default="", help="only those whose name begins so")
    arguments.add_argument("--minutes", type=float, default=math.inf, help="begin no fit after")
    arguments.add_argument("--plot", type=Path)
    given = arguments.parse_args()
    names = ("user", "item", "rating", "timestamp")
    columns = dict(zip(names, given.columns.split(","), strict=True))
    study = Study(Interactions.read(given.file, **columns), given.results, given.trials)
    began = time.monotonic()
    for key, parameters in study.open(given.methods):
        if time.monotonic() - began > 60 * given.minutes:
            print("there is more to do")
            break
        study.fit(key, parameters)
    table = study.table()
    print_frame(table)
    if given.plot is not None:
        points = table.select("method", "parameters", quality="test")
        save(plot_frontier(points, "test ROC AUC"), given.plot)


if __name__ == "__main__":
    main()
