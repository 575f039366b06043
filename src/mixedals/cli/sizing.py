"""Which row gets which embedding size: everything the command line has for that."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
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

    def parameters(self) -> dict[str, Any]:
        """As the estimator takes them, checked."""
        import numpy as np

        dims, rule = sizes_of(self.dims), self._rule()
        try:
            rule.fit(np.ones(1, np.int64), dims)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return {"dims": dims, "sizing": rule}

    def _rule(self) -> "Sizing":
        from mixedals import PopularitySizing, PowerLawSizing, UniformSizing

        if self.sizing == Rule.popularity:
            return PopularitySizing(self.gamma)
        if self.sizing == Rule.power_law:
            return PowerLawSizing(self.temperature, self.partitions)
        return UniformSizing()


def sizes_of(text: str) -> tuple[int, ...]:
    """Embedding sizes as they are typed: 2,4,6."""
    try:
        return tuple(sorted(int(p) for p in text.split(",")))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be whole numbers with commas between them, as in 2,4,6",
            param_hint="--dims",
        ) from error
