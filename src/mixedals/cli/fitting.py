"""Training for ``mixedals fit``: one model, or a frontier of several budgets and what they face."""

import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixedals.cli.errors import INTERRUPTED
from mixedals.cli.evaluate import scores
from mixedals.cli.output import note, print_frame, print_json
from mixedals.cli.parts import Parts

if TYPE_CHECKING:
    import polars as pl

    from mixedals import Interactions, MixedALS

_GAMMAS = (2.0, 1.0, 0.5, 0.3, 0.2)


def fit_and_save(
    model: "MixedALS", output: Path, parts: Parts, **of_fit: Any
) -> tuple[bool, dict[str, Any]]:
    """Fit the model and save it; tells whether Ctrl-C ended it early, and what there is to say."""
    began = time.perf_counter()
    interrupted = _train(model, parts.train, validation=parts.validation, **of_fit)
    seconds = time.perf_counter() - began
    model.save(output)
    facts: dict[str, Any] = {
        "model": str(output),
        "users": len(model.user_ids_),
        "items": len(model.item_ids_),
        "ratings": len(parts.train),
        "parameters": model.n_parameters_,
        "iterations": len(model.history_),
        "best_iteration": model.best_iteration_,
        "seconds": seconds,
    }
    for name, part in {"validation": parts.validation, "test": parts.test}.items():
        if part is not None and len(part):
            facts[name] = {**scores(model, part), "left_out": parts.left_out[name]}
    return interrupted, facts


def fit_frontier(
    by_rule: "MixedALS",
    models: "Mapping[Path, MixedALS]",
    parts: Parts,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """Fit models of several budgets from one pilot, and save each; plot them beside others.

    The others, fitted only for the plot, have the sizes of the popularity rule and those of plain
    ALS, and everything else as in ``by_rule``.
    """
    import polars as pl

    from mixedals.pilot import pilot_of

    if plot is not None and parts.validation is None:
        raise typer.BadParameter(
            "quality is plotted on ratings that are held out: give --split or --validation",
            param_hint="--plot",
        )
    pilot = pilot_of(next(iter(models.values())))
    if _train(pilot, parts.train):
        raise KeyboardInterrupt
    done = []
    for output, model in models.items():
        interrupted, facts = fit_and_save(model, output, parts, start=pilot)
        done.append(facts)
        if interrupted:
            break
    metric = str(by_rule.metric)
    points = [_point("budget", facts, metric) for facts in done]
    if plot is not None and not interrupted:
        from mixedals.plots import plot_frontier, save

        points += _rivals(by_rule, parts, max(of["parameters"] for of in done))
        save(plot_frontier(pl.DataFrame(points), metric), plot)
    if as_json:
        columns = dict(parts.train.columns)
        print_json(
            {"models": done, "points": points, "interrupted": interrupted, "columns": columns}
        )
    else:
        print_frame(_table(done, metric))
        if len(points) > len(done):
            print_frame(pl.DataFrame(points), "Beside others with the same penalties")
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _table(done: list[dict[str, Any]], metric: str) -> "pl.DataFrame":
    import polars as pl

    names = ("model", "parameters", "best_iteration", "seconds")
    return pl.DataFrame(
        {name: facts[name] for name in names}
        | {part: facts[part].get(metric) for part in ("validation", "test") if part in facts}
        for facts in done
    )


def _point(method: str, facts: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """A point of the plot; its quality is that on the last part that is held out."""
    held_out = facts.get("test") or facts.get("validation") or {}
    return {"method": method, "parameters": facts["parameters"], "quality": held_out.get(metric)}


def _rivals(by_rule: "MixedALS", parts: Parts, most: int) -> Iterator[dict[str, Any]]:
    """Points of the popularity rule and of plain ALS, up to about as many parameters."""
    from sklearn.base import clone

    from mixedals import PopularitySizing, UniformSizing
    from mixedals.plan import plan

    n_rows = parts.train.n_users + parts.train.n_items
    dims = range(1, -(-most // n_rows) + 1)
    rivals: list[tuple[str, dict[str, Any]]] = [
        ("popularity rule", {"sizing": PopularitySizing(gamma)}) for gamma in _GAMMAS
    ]
    rivals += [("plain ALS", {"dims": d, "sizing": UniformSizing()}) for d in dims]
    held_out = parts.test or parts.validation
    assert held_out is not None
    for method, sizes in rivals:
        model = clone(by_rule).set_params(**sizes)
        note(f"{method}, {plan(model, parts.train).n_parameters:,} parameters")
        if _train(model, parts.train, validation=parts.validation):
            raise KeyboardInterrupt
        quality = scores(model, held_out).get(str(by_rule.metric))
        yield {"method": method, "parameters": model.n_parameters_, "quality": quality}


def _train(model: "MixedALS", train: "Interactions", **of_fit: Any) -> bool:
    """Fit the model; tells whether Ctrl-C ended it early."""
    from mixedals.trainer import TrainingInterrupted

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(train, **of_fit)
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return any(issubclass(warning.category, TrainingInterrupted) for warning in caught)
