"""Figures of models and searches, with Matplotlib (the extra ``plot``)."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mixedals._atomic import replacing
from mixedals._extras import require
from mixedals.metrics import metric_of
from mixedals.plan import fitted_counts, fitted_tiers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mixedals.estimator import MixedALS
    from mixedals.tuning import Search

_SIDES = ("users", "items")
_BINS = 24


def plot_model(model: "MixedALS") -> "Figure":
    """The history of a fitted model, where its parameters went, and who got which size.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> len(plot_model(model).axes)
    4
    """
    figure = _figure(10, 6.8)
    (history_axes, tier_axes), size_axes = figure.subplots(2, 2)
    _draw_history(history_axes, model)
    _draw_tiers(tier_axes, fitted_tiers(model))
    _draw_sizes(size_axes, model)
    return figure


def plot_sizes(model: "MixedALS") -> "Figure":
    """Who got which size: its share among the users, and among the items, of each popularity.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> [axes.get_title() for axes in plot_sizes(model).axes]
    ['Sizes of users by popularity', 'Sizes of items by popularity']
    """
    figure = _figure(10, 3.6)
    _draw_sizes(figure.subplots(1, 2), model)
    return figure


def plot_search(search: "Search") -> "Figure":
    """A search: the frontier, and the metric by each parameter.

    Examples
    --------
    >>> from mixedals import split_at_random
    >>> from mixedals.synthetic import generate_ratings
    >>> from mixedals.tuning import Search
    >>> train, valid = split_at_random(generate_ratings(100, 50, 2000).binarise(), (0.8, 0.2))
    >>> search = Search(train, valid.restrict_to(train))
    >>> search.run(2)
    >>> len(plot_search(search).axes)
    6
    """
    trials, name = search.trials, metric_of(search.estimator().metric).name
    searched = [name for name in trials.columns if name in search.best_parameters]
    figure = _figure(10, 6)
    axes = figure.subplots(2, 3).ravel()
    _draw_frontier(axes[0], search, name)
    for at, parameter in zip(axes[1:], searched, strict=False):
        _draw_parameter(at, trials, parameter, name)
    for at in axes[1 + len(searched) :]:
        at.remove()
    return figure


def plot_frontier(points: pl.DataFrame, metric: str) -> "Figure":
    """Quality against parameters by method.

    Parameters
    ----------
    points
        ``method``, ``parameters``, ``quality``, which isn't drawn where it is None.
    metric
        What the quality is.

    Examples
    --------
    >>> points = {"method": ["plain", "plain"], "parameters": [100, 200], "quality": [0.6, 0.7]}
    >>> len(plot_frontier(pl.DataFrame(points), "roc_auc").axes)
    1
    """
    figure = _figure(6.5, 4)
    axes = figure.subplots()
    known = points.cast({"quality": pl.Float64}).drop_nulls("quality")
    for (method,), of_method in known.group_by("method", maintain_order=True):
        of_method = of_method.sort("parameters")
        axes.plot(of_method["parameters"], of_method["quality"], "o-", label=method)
    axes.set(xlabel="parameters", ylabel=f"{metric} on ratings held out")
    _make_logarithmic(axes, points["parameters"])
    if known.height:
        axes.legend(frameon=False)
    return figure


def save(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure to a file whose suffix says the format.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.svg"
    >>> save(plot_model(model), path)
    >>> path.stat().st_size > 0
    True
    """
    path = Path(path)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=150)


def _figure(width: float, height: float) -> "Figure":
    figure: Figure = require("matplotlib.figure", "plot").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure


def _draw_history(axes: "Axes", model: "MixedALS") -> None:
    history = model.history_
    axes.plot(history["iteration"], history["objective"], color="C0")
    axes.set(xlabel="iteration", title="Training")
    axes.xaxis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(integer=True))
    axes.set_ylabel("objective", color="C0")
    evaluated = history.filter(pl.col("metric").is_not_null())
    if len(evaluated):
        right = axes.twinx()
        right.plot(evaluated["iteration"], evaluated["metric"], "o-", color="C1")
        right.axvline(model.best_iteration_, color="C1", linestyle=":")
        right.set_ylabel(f"{metric_of(model.metric).name} on validation ratings", color="C1")


def _draw_tiers(axes: "Axes", tiers: pl.DataFrame) -> None:
    sizes = tiers["p"].unique().sort().to_list()
    place = np.arange(len(sizes))
    for shift, side in zip((-0.2, 0.2), _SIDES, strict=True):
        of_side = dict(tiers.filter(side=side).select("p", "parameters").iter_rows())
        heights = [of_side.get(p, 0) for p in sizes]
        axes.bar(place + shift, heights, width=0.4, label=side)
    axes.set_xticks(place, [str(p) for p in sizes])
    axes.set(xlabel="embedding size", ylabel="parameters", title="Where the parameters went")
    axes.legend(frameon=False)


def _draw_sizes(both: "Sequence[Axes]", model: "MixedALS") -> None:
    """Stacked shares of the sizes by the logarithm of the number of ratings, for each side."""
    counts = fitted_counts(model)
    sizes = np.union1d(model.user_dims_, model.item_dims_)
    colours = require("matplotlib", "plot").colormaps["viridis"](np.linspace(0.95, 0.1, len(sizes)))
    for axes, side, dims in zip(both, _SIDES, (model.user_dims_, model.item_dims_), strict=True):
        rated = counts[side] > 0
        if not rated.any():  # a model that came without its training's pairs
            continue
        of_row = np.log10(counts[side][rated])
        edges = np.linspace(of_row.min(), max(of_row.max(), of_row.min() + 0.1), _BINS + 1)
        place = np.clip(np.digitize(of_row, edges) - 1, 0, _BINS - 1)
        rows = np.bincount(place, minlength=_BINS)
        below = np.zeros(_BINS)
        for p, colour in zip(sizes, colours, strict=True):
            share = np.bincount(place[dims[rated] == p], minlength=_BINS) / np.maximum(rows, 1)
            widths = np.diff(10**edges)
            axes.bar(
                10 ** edges[:-1], share, widths, below, align="edge", color=colour, label=str(p)
            )
            below += share
        axes.set(xscale="log", xlabel="ratings", ylabel="share of the rows", ylim=(0, 1))
        axes.set_title(f"Sizes of {side} by popularity")
    if both[1].containers:
        both[1].legend(title="size", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _draw_frontier(axes: "Axes", search: "Search", metric: str) -> None:
    trials, frontier = search.trials, search.frontier()
    axes.scatter(trials["n_parameters"], trials["metric"], s=12, color="0.7")
    axes.plot(frontier["n_parameters"], frontier["metric"], "o-", drawstyle="steps-post")
    axes.set(xlabel="parameters", ylabel=metric, title="Best at each budget")
    _make_logarithmic(axes, trials["n_parameters"])


def _draw_parameter(axes: "Axes", trials: pl.DataFrame, parameter: str, metric: str) -> None:
    trials = trials.drop_nulls(parameter)
    if parameter == "dims":  # sets from small to large
        sizes = pl.col("dims").str.split(",").list.eval(pl.element().cast(pl.Int64))
        trials = trials.sort(sizes.list.sum(), maintain_order=True)
    axes.scatter(trials[parameter], trials["metric"], s=14)
    axes.set(xlabel=parameter, ylabel=metric)
    if parameter in ("gamma", "reg", "projection_reg", "budget"):
        _make_logarithmic(axes, trials[parameter])


def _make_logarithmic(axes: "Axes", values: pl.Series) -> None:
    """A logarithmic axis that has labels however few decades it spans."""
    ticker = require("matplotlib.ticker", "plot")
    low, high = np.quantile(values, [0, 1])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
