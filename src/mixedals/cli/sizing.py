"""Which row gets which embedding size: everything the command line has for that."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

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

    def sizes(self) -> tuple[int, ...]:
        """The allowed sizes."""
        try:
            return tuple(int(p) for p in self.dims.split(","))
        except ValueError as error:
            raise typer.BadParameter(
                f"{self.dims!r} must be whole numbers with commas between them, as in 2,4,6",
                param_hint="--dims",
            ) from error

    def rule(self) -> "Sizing":
        """The rule."""
        from mixedals import PopularitySizing, PowerLawSizing, UniformSizing

        if self.sizing == Rule.popularity:
            return PopularitySizing(self.gamma)
        if self.sizing == Rule.power_law:
            return PowerLawSizing(self.temperature, self.partitions)
        return UniformSizing()
