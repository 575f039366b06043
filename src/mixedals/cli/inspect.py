"""``mixedals inspect``: what a model is."""

from typing import TYPE_CHECKING, Any

from mixedals.cli.models import ModelFile
from mixedals.cli.output import AsJson, PlotFile, print_facts, print_frame, print_json

if TYPE_CHECKING:
    from mixedals import MixedALS

_SHOWN = 12


def inspect(
    model: ModelFile,
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model is: sizes, where the parameters went, history.

    [dim]mixedals inspect movies.mixedals --plot movies.png[/dim]
    """
    from mixedals import load
    from mixedals.plan import fitted_tiers

    fitted = load(model)
    tiers, history = fitted_tiers(fitted), fitted.history_
    if plot is not None:
        from mixedals.plots import plot_model, save

        save(plot_model(fitted), plot)
    facts = _facts(fitted)
    if as_json:
        print_json({**facts, "tiers": tiers.to_dicts(), "history": history.to_dicts()})
        return
    print_facts(facts)
    print_frame(tiers, "Where the parameters went")
    evaluated = history.filter(history["metric"].is_not_null())
    shown = evaluated if len(evaluated) else history
    print_frame(
        shown.tail(_SHOWN).select("iteration", "objective", "metric", "seconds"),
        "Last evaluations" if len(evaluated) else "Last iterations",
    )


def _facts(fitted: "MixedALS") -> dict[str, Any]:
    parameters = fitted.get_params(deep=False)
    shown = (
        "dims", "projection", "reg", "reg_exponent", "projection_reg", "projection_sampling",
        "global_mean", "biases", "metric",
    )  # fmt: skip
    return {
        "users": len(fitted.user_ids_),
        "items": len(fitted.item_ids_),
        "ratings": len(fitted._fitted.seen.indices),
        "parameters": fitted.n_parameters_,
        **{name: parameters[name] for name in shown},
        "random_state": fitted.seed_,
        "iterations": len(fitted.history_),
        "best_iteration": fitted.best_iteration_,
    }
