"""The figures of a study, one panel each: drawn once, for files and for the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from mixedals._extras import require
from mixedals.experiments.results import Curve, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1b1f24"
"""What is neither paper nor data; the page gives it another colour in the dark."""

_COLOURS = ("#d0553b", "#2f9e62", "#3b7dd8", "#9b5fc0", "#c98a1b", "#2a9aa5", "#c2578f", "#7c8794")
_MARKERS = "osD^vPXp"
_STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "font.size": 9,
    "grid.alpha": 0.25,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "mixedals",
    "text.color": INK,
    "text.parse_math": False,  # a title may hold dollars
    "xtick.color": INK,
    "ytick.color": INK,
}
_SIDES = ("users", "items")
_DECILES = [str(decile) for decile in range(1, 11)]


@dataclass
class Panel:
    """A figure of one panel.

    Attributes
    ----------
    name
        Of its files.
    title
        What it shows.
    figure
        Matplotlib's.
    columns, rows
        What is drawn, as a table.
    tips
        What is said of a marked spot, by its id in the figure.
    """

    name: str
    title: str
    figure: "Figure"
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    tips: dict[str, str] = field(default_factory=dict)

    def save(self, file: Path | IO[str], of: str, **options: Any) -> None:
        """Write the figure as ``png`` or ``svg``, the same bytes each time."""
        if of == "svg":
            options["metadata"] = {"Date": None}
        with require("matplotlib", "plot").rc_context(_STYLE):
            self.figure.savefig(file, format=of, dpi=150, **options)

    def mark(self, x: Any, y: float, colour: str, tip: str) -> None:
        """A spot to point at, which says something; it can't be seen."""
        name = f"tip{len(self.tips)}"
        self.tips[name] = tip
        axes = self.figure.axes[0]
        axes.plot([x], [y], "o", color=colour, markersize=13, alpha=0.001, gid=name, zorder=3)


@dataclass(frozen=True)
class _Look:
    """How an arm is drawn."""

    curve: Curve
    colour: str
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """Matplotlib's options for a line."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": 5,
            "label": self.curve.title,
        }


def panels(curves: Mapping[str, Curve], popularity: Mapping[str, Any]) -> list[Panel]:
    """All figures of a study that have something to show.

    Parameters
    ----------
    curves
        Its arms.
    popularity
        Histograms of the training's rows, for users and items.
    """
    looks = [
        _Look(curve, _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)])
        for i, curve in enumerate(curves.values())
    ]
    mixed = _mixed(curves)
    with require("matplotlib", "plot").rc_context(_STYLE):
        drawn = [
            _by_size(looks, "auc-by-parameters", "ROC AUC", "test_auc"),
            _by_size(looks, "rmse-by-parameters", "RMSE", "test_rmse"),
            *(_popularity(side, popularity[side]) for side in _SIDES),
            _by_iteration(looks),
            *(_auc_by_decile(looks, side) for side in _SIDES),
            *(_rows_by_dimension(mixed, side) for side in _SIDES if mixed is not None),
            *(_parameters_by_decile(curves, side) for side in _SIDES),
            _seconds(looks),
        ]
    return [panel for panel in drawn if panel.rows]


def _mixed(curves: Mapping[str, Curve]) -> Curve | None:
    """The first arm whose rows have different dimensions."""
    for curve in curves.values():
        if len({tier["p"] for tier in curve.largest.details[0]["tiers"]}) > 1:
            return curve
    return None


def _panel(name: str, title: str, columns: Sequence[str], **labels: str) -> tuple[Panel, "Axes"]:
    figure: Figure = require("matplotlib.figure", "plot").Figure(
        figsize=(4.3, 3.5), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set(title=title, **labels)
    axes.set_axisbelow(True)
    return Panel(name, title, figure, columns), axes


def _legend(panel: Panel, handles: Sequence[Any]) -> None:
    """Of handles that are given: Matplotlib would drop titles that begin with ``_``."""
    panel.figure.legend(handles=handles, loc="outside lower center", ncols=2)


def _by_size(looks: Sequence[_Look], name: str, label: str, column: str) -> Panel:
    """A metric against the number of parameters, with the spread over the seeds."""
    columns = ("method", "model", "parameters", label, "standard deviation")
    panel, axes = _panel(
        name,
        f"Test {label} by number of parameters",
        columns,
        xlabel="parameters",
        ylabel=f"test {label}",
    )
    axes.xaxis.set_major_formatter(require("matplotlib.ticker", "plot").FuncFormatter(_short))
    handles: list[Any] = []
    for look in looks:
        models = look.curve.models
        values = [model.values(column) for model in models]
        means = [of.mean() for of in values]
        spreads = [of.std(ddof=1) if len(of) > 1 else 0.0 for of in values]
        handles.append(axes.errorbar(look.curve.sizes, means, spreads, capsize=2, **look.line))
        for model, mean, spread in zip(models, means, spreads, strict=True):
            tip = (
                f"{look.curve.title}, {model.label}: {label} {mean:.4f} ± {spread:.4f}, "
                f"{model.n_parameters:,} parameters; {_settings(model)}"
            )
            panel.mark(model.n_parameters, mean, look.colour, tip)
            panel.rows.append(
                (look.curve.title, model.label, model.n_parameters, float(mean), float(spread))
            )
    _legend(panel, handles)
    return panel


def _popularity(side: str, histogram: Mapping[str, Sequence[float]]) -> Panel:
    panel, axes = _panel(
        f"popularity-{side}",
        f"Popularity of {side}",
        ("ratings from", "to", side),
        xlabel="log10 of the number of training ratings",
        ylabel=side,
    )
    edges, rows = histogram["edges"], histogram["rows"]
    axes.stairs(rows, edges, fill=True, color=_COLOURS[2], alpha=0.8)
    for low, high, n in zip(edges, edges[1:], rows, strict=False):
        panel.rows.append((round(10**low), round(10**high), n))
    return panel


def _by_iteration(looks: Sequence[_Look]) -> Panel:
    """Validation AUC of each arm's largest model."""
    panel, axes = _panel(
        "auc-by-iteration",
        "Validation ROC AUC by iteration, largest models",
        ("method", "iteration", "validation ROC AUC"),
        xlabel="iteration",
        ylabel="validation ROC AUC",
    )
    handles: list[Any] = []
    for look in looks:
        histories = np.array([of["history"] for of in look.curve.largest.details])
        iterations, aucs = histories.mean(axis=0).T
        handles += axes.plot(iterations, aucs, **look.line)
        for iteration, auc in zip(iterations.astype(int).tolist(), aucs.tolist(), strict=True):
            tip = f"{look.curve.title}, iteration {iteration}: {auc:.4f}"
            panel.mark(iteration, auc, look.colour, tip)
            panel.rows.append((look.curve.title, iteration, auc))
    _legend(panel, handles)
    return panel


def _auc_by_decile(looks: Sequence[_Look], side: str) -> Panel:
    panel, axes = _panel(
        f"auc-by-popularity-{side}",
        f"Test ROC AUC by popularity of {side}, largest models",
        ("method", "tenth", "test ROC AUC"),
        xlabel=f"tenth of the {side}, the most popular first",
        ylabel="test ROC AUC",
    )
    handles: list[Any] = []
    for look in looks:
        aucs = look.curve.largest.mean_deciles(side, "auc")
        handles += axes.plot(_DECILES, aucs, **look.line)
        for decile, auc in zip(_DECILES, aucs.tolist(), strict=True):
            if np.isfinite(auc):
                tip = f"{look.curve.title}, tenth {decile} of the {side}: {auc:.4f}"
                panel.mark(decile, auc, look.colour, tip)
                panel.rows.append((look.curve.title, decile, auc))
    _legend(panel, handles)
    return panel


def _rows_by_dimension(curve: Curve, side: str) -> Panel:
    """How many rows have which dimension, in each model of an arm."""
    panel, axes = _panel(
        f"dimensions-{side}",
        f"Dimensions of {side} ({curve.title})",
        ("model", "dimension", side),
        xlabel="model",
        ylabel=side,
    )
    tiers = [
        {of["p"]: of["rows"] for of in model.details[0]["tiers"] if of["side"] == side}
        for model in curve.models
    ]
    labels = [model.label for model in curve.models]
    axes.tick_params(axis="x", labelsize=8)
    handles: list[Any] = []
    bottom = np.zeros(len(labels))
    for p, colour in zip(sorted(set().union(*tiers)), cycle(_COLOURS[::-1]), strict=False):
        rows = np.array([of.get(p, 0) for of in tiers])
        bars = axes.bar(labels, rows, bottom=bottom, color=colour, label=f"dimension {p}")
        handles.append(bars)
        bottom += rows
        panel.rows += [(label, p, n) for label, n in zip(labels, rows.tolist(), strict=True)]
    _legend(panel, handles)
    return panel


def _parameters_by_decile(curves: Mapping[str, Curve], side: str) -> Panel:
    """The share of the parameters that each tenth of the rows gets."""
    panel, axes = _panel(
        f"parameters-by-popularity-{side}",
        f"Share of the parameters, by popularity of {side}",
        ("model", "tenth", "parameters"),
        xlabel=f"tenth of the {side}, the most popular first",
        ylabel="share of the side's parameters",
    )
    axes.yaxis.set_major_formatter(require("matplotlib.ticker", "plot").PercentFormatter(1))
    mixed = _mixed(curves)
    models = [] if mixed is None else list(mixed.models)
    models += [curves["plain"].largest] if "plain" in curves else []
    handles: list[Any] = []
    looks = zip(models, cycle(_COLOURS[::-1]), cycle(_MARKERS), strict=False)
    for model, colour, marker in looks:
        parameters = model.mean_deciles(side, "parameters")
        shares = parameters / parameters.sum()
        handles += axes.plot(_DECILES, shares, f"{marker}-", color=colour, ms=5, label=model.label)
        for decile, share, n in zip(_DECILES, shares, parameters, strict=True):
            tip = f"{model.label}, tenth {decile} of the {side}: {share:.1%}, {n:,.0f} parameters"
            panel.mark(decile, share, colour, tip)
            panel.rows.append((model.label, decile, round(n)))
    axes.set_ylim(bottom=0)
    _legend(panel, handles)
    return panel


def _seconds(looks: Sequence[_Look]) -> Panel:
    panel, axes = _panel(
        "seconds",
        "Seconds a fit, with its evaluations",
        ("method", "seconds"),
        xlabel="seconds, mean over models and seeds",
    )
    for look in looks:
        seconds = float(np.mean([model.values("seconds").mean() for model in look.curve.models]))
        axes.barh(look.curve.title, seconds, color=look.colour)
        panel.rows.append((look.curve.title, seconds))
    axes.invert_yaxis()
    return panel


def _settings(model: Model) -> str:
    """Its parameters, without those that all models share."""
    shared = ("iterations", "eval_every", "metric")
    shown = {name: of for name, of in model.settings.items() if name not in shared}
    return ", ".join(f"{name} {of}" for name, of in shown.items())


def _short(n: float, _: Any = None) -> str:
    for unit, suffix in ((1e6, " M"), (1e3, " k")):
        if n >= unit:
            return f"{n / unit:g}{suffix}"
    return f"{n:g}"
