"""The estimator's parameters as options but for the sizes, and the TOML files that give them."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mixedals import Interactions, MixedALS

_MODEL = "Model"
_TRAINING = "Training"


class Projection(StrEnum):
    """How smaller embeddings get into the common space."""

    learned = "learned"
    padded = "padded"


class Sampling(StrEnum):
    """What projections are fitted to, where it isn't all ratings."""

    paper = "paper"


class MetricName(StrEnum):
    """Metrics of held-out ratings."""

    roc_auc = "roc_auc"
    rmse = "rmse"


def _take_settings(ctx: typer.Context, path: Path | None) -> Path | None:
    """Make a TOML file's values the defaults of the command's options."""
    if path is None:
        return None
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {error}") from error
    parameters: list[Any] = ctx.command.params
    options = {
        option.name: option.multiple
        for option in parameters
        if option.param_type_name == "option" and option.name not in ("settings", "as_json")
    }
    values = {name.replace("-", "_"): value for name, value in settings.items()}
    if unknown := sorted(set(values) - set(options)):
        raise typer.BadParameter(
            f"{path}: there is no option {', '.join(unknown)}; there are "
            f"{', '.join(sorted(options))}"
        )
    ctx.default_map = {
        name: [*map(_as_typed, value)] if options[name] else _as_typed(value)
        for name, value in values.items()
    }
    return path


def _as_typed(value: Any) -> Any:
    """A TOML value as it would be typed in a shell: 2,4,6 or users=1,items=2."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{key}={of}" for key, of in value.items())
    return value


Settings = Annotated[
    Path | None,
    typer.Option(
        metavar="TOML",
        is_eager=True,
        callback=_take_settings,
        help="Take options from a TOML file, such as reg = 3.0; those typed here come first.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1, help="Threads; by default the CPUs that there are.", rich_help_panel=_TRAINING
    ),
]


@dataclass(frozen=True)
class PenaltyOptions:
    """The penalties of ``MixedALS``."""

    reg: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Penalty of embeddings, also as users=3,items=5.",
            rich_help_panel=_MODEL,
        ),
    ] = "3"
    reg_exponent: Annotated[
        float,
        typer.Option(
            min=0,
            help="A row's penalty is reg * (its number of ratings / the mean) ** this.",
            rich_help_panel=_MODEL,
        ),
    ] = 0.0
    projection_reg: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Penalty of learned projections, also as users=1000,items=300.",
            rich_help_panel=_MODEL,
        ),
    ] = "1000"

    def parameters(self) -> dict[str, Any]:
        """As the estimator takes them."""
        return {
            "reg": a_side(self.reg, "--reg"),
            "reg_exponent": self.reg_exponent,
            "projection_reg": a_side(self.projection_reg, "--projection-reg"),
        }


@dataclass(frozen=True)
class TrainingOptions:
    """The parameters of ``MixedALS`` but for sizes and penalties."""

    projection: Annotated[
        Projection,
        typer.Option(
            help="Smaller embeddings get into the common space by learned matrices, or padded "
            "with zeros.",
            rich_help_panel=_MODEL,
        ),
    ] = Projection.learned
    projection_sampling: Annotated[
        Sampling | None,
        typer.Option(
            help="Fit projections to the paper's sample, not to all ratings.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    global_mean: Annotated[
        bool,
        typer.Option(
            "--global-mean", help="Add the mean rating to predictions.", rich_help_panel=_MODEL
        ),
    ] = False
    biases: Annotated[
        bool,
        typer.Option(
            "--biases",
            help="Learn a bias for every user and item; implies the mean.",
            rich_help_panel=_MODEL,
        ),
    ] = False
    iterations: Annotated[
        int, typer.Option(min=1, help="Iterations in all.", rich_help_panel=_TRAINING)
    ] = 30
    eval_every: Annotated[
        int,
        typer.Option(
            min=1,
            help="Iterations between evaluations, and between checkpoints.",
            rich_help_panel=_TRAINING,
        ),
    ] = 5
    metric: Annotated[
        MetricName | None,
        typer.Option(
            help="Chooses the best iteration. By default roc_auc where ratings have two values, "
            "else rmse.",
            show_default=False,
            rich_help_panel=_TRAINING,
        ),
    ] = None
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="End after so many evaluations without a better one.",
            rich_help_panel=_TRAINING,
        ),
    ] = None
    random_state: Annotated[int, typer.Option(min=0, help="Seed.", rich_help_panel=_TRAINING)] = 0
    n_threads: Threads = None
    settings: Settings = None

    def estimator(self, train: "Interactions", **others: Any) -> "MixedALS":
        """The estimator for these ratings, its parameters checked."""
        from mixedals import MixedALS
        from mixedals._parameters import check_parameters

        model = MixedALS(
            projection=self.projection.value,
            projection_sampling="paper" if self.projection_sampling else None,
            global_mean=self.global_mean,
            biases=self.biases,
            iterations=self.iterations,
            eval_every=self.eval_every,
            metric=(self.metric or metric_for(train)).value,
            patience=self.patience,
            random_state=self.random_state,
            n_threads=self.n_threads,
            **others,
        )
        try:
            check_parameters(model.get_params(deep=False))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return model


def metric_for(ratings: "Interactions") -> MetricName:
    """ROC AUC where ratings have two values, else RMSE."""
    values = ratings.by_user.values
    low, high = values.min(), values.max()
    two = low < high and ((values == low) | (values == high)).all()
    return MetricName.roc_auc if two else MetricName.rmse


def a_side(text: str, option: str) -> float | dict[str, float]:
    """A number for both sides, or one for each as in ``users=3,items=5``."""
    try:
        if "=" not in text:
            return float(text)
        return {name.strip(): float(of) for name, of in (p.split("=") for p in text.split(","))}
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be a number, or one for each side as in users=3,items=5",
            param_hint=option,
        ) from error
