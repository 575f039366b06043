"""Draws the README's picture: quality against parameters, for three ways to choose sizes.

``python examples/parameters.py docs/figures/parameters.svg`` takes generated ratings and, for each
choice of sizes, the penalty with the best ROC AUC on validation ratings. Drawn is the ROC AUC of
these models on test ratings. It takes about half a minute.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from mixedals import BudgetSizing, MixedALS, PopularitySizing, split_at_random
from mixedals.metrics import roc_auc
from mixedals.plots import save
from mixedals.synthetic import generate_ratings

REG = (0.5, 1.0, 2.0, 4.0)
GAMMA = (0.5, 1.0)
MIXED = ((1, 2), (1, 2, 4), (2, 4, 6), (2, 4, 8))
BUDGETS = (6_500, 8_000, 9_500, 11_000, 13_000, 16_500, 22_000)

Point = tuple[int, float]


class Study:
    """Ratings in three parts, and models measured on them."""

    def __init__(self) -> None:
        ratings = generate_ratings(4_000, 1_500, 250_000, dims=(2, 4, 8), noise=0.8)
        self.train, valid, test = split_at_random(ratings.binarise(), (0.8, 0.1, 0.1))
        self.valid, self.test = (part.restrict_to(self.train) for part in (valid, test))

    def point(self, **settings: object) -> Point:
        """Parameters and ROC AUC on test ratings, with the penalty that validation finds best."""
        models = [self._fitted(reg=reg, **settings) for reg in REG]
        model = max(models, key=lambda model: model.history_["metric"].max())
        pairs = self.test.to_frame()
        predicted = model.predict(pairs["user"], pairs["item"])
        return model.n_parameters_, roc_auc(pairs["rating"], predicted)

    def _fitted(self, **settings: object) -> MixedALS:
        model = MixedALS(projection_reg=30.0, iterations=15, progress=False, **settings)
        return model.fit(self.train, validation=self.valid)

    def curves(self) -> Iterable[tuple[str, list[Point]]]:
        """The points of each choice of sizes, under its name."""
        yield "one size for all", [self.point(dims=d) for d in (1, 2, 3, 4)]
        by_popularity = [
            self.point(dims=dims, sizing=PopularitySizing(gamma))
            for dims in MIXED
            for gamma in GAMMA
        ]
        yield "by popularity, as in the paper", sorted(by_popularity)
        budgets = [BudgetSizing(parameters=budget) for budget in BUDGETS]
        yield (
            "best use of a budget",
            [self.point(sizing=budget, projection="padded") for budget in budgets],
        )


def main(path: Path) -> None:
    """Measure and draw."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    for (label, points), marker in zip(Study().curves(), "os^", strict=True):
        axes.plot(*zip(*points, strict=True), marker=marker, label=label)
        print(f"{label}: " + ", ".join(f"{n:,} {score:.4f}" for n, score in points))
    axes.set(xlabel="parameters", ylabel="ROC AUC on test ratings")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "parameters.svg"))
