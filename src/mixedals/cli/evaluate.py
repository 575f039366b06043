"""``mixedals evaluate``: how good a model is on held-out ratings."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixedals.cli.columns import Columns, Files, types_of_ids
from mixedals.cli.models import ModelFile
from mixedals.cli.options import with_groups
from mixedals.cli.output import AsJson, print_facts, print_frame, print_json
from mixedals.cli.parts import PartsOptions

if TYPE_CHECKING:
    from mixedals import Interactions
    from mixedals.recommender import Recommender


@with_groups
def evaluate(
    model: ModelFile,
    files: Files,
    columns: Columns,
    parts: PartsOptions,
    k: Annotated[
        int, typer.Option("--count", "-k", min=1, help="Length of the recommendations.")
    ] = 10,
    relevant_above: Annotated[
        float | None,
        typer.Option(
            help="Ratings above this are relevant; by default above the mean of training.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on ratings that it was not fitted to.

    With the --split that it was fitted with, on the last part.

    [dim]mixedals evaluate movies.mixedals ratings.csv --split time[/dim]
    """
    from mixedals import load
    from mixedals.ranking import evaluate_ranking

    fitted = load(model)
    types = types_of_ids(fitted._fitted.users, fitted._fitted.items)
    held_out = parts.last(files, columns, types)
    predicted = scores(fitted, held_out)
    ranking = asdict(evaluate_ranking(fitted, held_out, k, relevant_above))
    deciles = ranking.pop("deciles")
    if as_json:
        print_json({**predicted, **ranking, "deciles": deciles.to_dicts()})
        return
    print_facts({**predicted, **ranking})
    print_frame(deciles, f"The best {k} by popularity of the items, the most popular tenth first")


def scores(model: "Recommender", held_out: "Interactions") -> dict[str, Any]:
    """How well the model predicts ratings: those that it can, and how many it can't."""
    import numpy as np

    from mixedals.metrics import rmse, roc_auc

    pairs = held_out.to_frame()
    predicted = model.predict(pairs["user"], pairs["item"])
    known = ~np.isnan(predicted)
    if not known.any():
        raise ValueError(f"the model knows user and item of none of the {len(known):,} ratings")
    ratings, predicted = held_out.by_user.values[known], predicted[known]
    out: dict[str, Any] = {"ratings": int(known.sum())}
    if len(np.unique(ratings)) == 2:
        out["roc_auc"] = roc_auc(ratings, predicted)
    return out | {"rmse": rmse(ratings, predicted), "unknown": int((~known).sum())}
