"""Which row gets which embedding size: everything the command line has for that."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mixedals import BudgetSizing
    from mixedals.sizing import Sizing

_PANEL = "Sizes"


class Rule(StrEnum):
    """Rules from a row's number of ratings to its size."""

    popularity = "popularity"
    power_law = "power-law"
    uniform = "uniform"


@dataclass(frozen=True)
class SizingOptions:
    """The sizes that rows may have, and the rule that gives them one."""

    dims: Annotated[
        str,
        typer.Option(
            metavar="P,P,...",
            help="Embedding sizes that rows may have; a single one is plain ALS.",
            rich_help_panel=_PANEL,
        ),
    ] = "2,4,6"
    sizing: Annotated[
        Rule,
        typer.Option(
            help="Rule that gives rows their sizes: the paper's, Ginart et al.'s, or the largest "
            "size for all.",
            rich_help_panel=_PANEL,
        ),
    ] = Rule.popularity
    gamma: Annotated[
        float,
        typer.Option(
            help="Of popularity: smaller values give larger embeddings.", rich_help_panel=_PANEL
        ),
    ] = 0.2
    temperature: Annotated[
        float,
        typer.Option(help="Of power-law: 0 is the largest size for all.", rich_help_panel=_PANEL),
    ] = 0.4
    partitions: Annotated[
        int,
        typer.Option(help="Of power-law: how many groups of rows.", rich_help_panel=_PANEL),
    ] = 8
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]",
            help="Find the best sizes for so many parameters, as in 1.2M (or 5MB), in place of "
            "--sizing and --dims. Several give a model each.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help="Of a budget: sizes that rows may have; 0 where there are biases. By default "
            "1,2,3,4,6,8,10,12.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """As the estimator takes them, checked."""
        import numpy as np

        dims, rule = sizes_of(self.dims), self._rule()
        if self.candidates is not None and self.budget is None:
            raise typer.BadParameter(
                "they are a budget's: give --budget", param_hint="--candidates"
            )
        try:
            rule.fit(np.ones(1, np.int64), dims)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return {"dims": dims, "sizing": rule}

    def budgets(self) -> "dict[str, BudgetSizing]":
        """The budgets, by the text that they were given in."""
        from mixedals import BudgetSizing

        candidates = None if self.candidates is None else sizes_of(self.candidates, "--candidates")
        found: dict[str, BudgetSizing] = {}
        for text in map(str.strip, self.budget.split(",") if self.budget is not None else ()):
            try:
                sizing = BudgetSizing(**amount_of(text), candidates=candidates)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
            same = next((other for other in found if found[other] == sizing), None)
            if same is not None:
                raise typer.BadParameter(
                    f"{same!r} and {text!r} are one budget: give each once", param_hint="--budget"
                )
            found[text] = sizing
        return found

    def _rule(self) -> "Sizing":
        from mixedals import PopularitySizing, PowerLawSizing, UniformSizing

        if self.sizing == Rule.popularity:
            return PopularitySizing(self.gamma)
        if self.sizing == Rule.power_law:
            return PowerLawSizing(self.temperature, self.partitions)
        return UniformSizing()


def sizes_of(text: str, option: str = "--dims") -> tuple[int, ...]:
    """Embedding sizes as they are typed: 2,4,6."""
    try:
        return tuple(sorted(int(p) for p in text.split(",")))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be whole numbers with commas between them, as in 2,4,6",
            param_hint=option,
        ) from error


def amount_of(text: str) -> dict[str, int]:
    """A budget as it is typed, 1.2M or 5MB: parameters or bytes."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([kKMG]?)(B?)", text.strip())
    if match is None:
        raise typer.BadParameter(
            f"{text!r} must be a number of parameters as in 500k or 1.2M, or of bytes as in 5MB",
            param_hint="--budget",
        )
    number, unit, of_bytes = match.groups()
    amount = round(float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[unit.lower()])
    return {"bytes" if of_bytes else "parameters": amount}
