"""Ratings made ready: binarised and split as asked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mixedals.cli.columns import Columns, types_of_ids
from mixedals.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from mixedals import Interactions

_PANEL = "Ratings"


class Split(StrEnum):
    """Ways to split ratings."""

    time = "time"
    random = "random"


@dataclass(frozen=True)
class Parts:
    """Ratings to train on, to choose the best iteration by, and to test on.

    Of the last two only those whose user and item are in the first; ``left_out`` counts the others.
    """

    train: "Interactions"
    validation: "Interactions | None"
    test: "Interactions | None"
    left_out: dict[str, int]


Validation = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Ratings to choose the best iteration by, in place of --split.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class PartsOptions:
    """What is done to the ratings that were read."""

    binarise: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Make ratings up to LOW 0 and from HIGH 1, and leave out those between.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    split: Annotated[
        Split | None,
        typer.Option(
            help="Split into parts to train on, to choose the best iteration by and to test on: "
            "the oldest first, or at random.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    fractions: Annotated[
        str,
        typer.Option(
            metavar="F,F[,F]",
            help="Shares of the parts; without a third there is no test.",
            rich_help_panel=_PANEL,
        ),
    ] = "0.8,0.1,0.1"
    split_seed: Annotated[
        int, typer.Option(min=0, help="Seed of a random split.", rich_help_panel=_PANEL)
    ] = 0

    def read(
        self,
        files: list[str],
        columns: Columns,
        types: "Mapping[str, pl.DataType] | None" = None,
    ) -> "Interactions":
        """The ratings of the files, binarised if so asked; ``types`` as for ``Columns.read``."""
        data = columns.read(files, types)
        note(f"read {', '.join(files)}: {data!r}")
        if self.binarise is None:
            return data
        bounds = numbers(self.binarise, "--binarise")
        if len(bounds) != 2 or not bounds[0] < bounds[1]:
            raise typer.BadParameter(
                f"{self.binarise!r} must be two rising numbers", param_hint="--binarise"
            )
        binary = data.binarise(*bounds)
        note(f"binarised, {len(data) - len(binary):,} ratings between left out: {_counts(binary)}")
        return binary

    def parts(self, files: list[str], columns: Columns, validation: str | None) -> Parts:
        """The parts to train on and to hold out; without a split there may be only the first."""
        if validation is not None and self.split is not None:
            raise typer.BadParameter("give either --split or --validation")
        data = self.read(files, columns)
        held_out: dict[str, Interactions] = {}
        if validation is not None:
            types = types_of_ids(data.user_vocabulary, data.item_vocabulary)
            held_out["validation"] = self.read([validation], columns, types)
        elif self.split is not None:
            data, *others = self._split(data)
            held_out = dict(zip(("validation", "test"), others, strict=False))
            note(f"training: {_counts(data)}")
        left_out = {}
        for name, part in held_out.items():
            held_out[name] = part.restrict_to(data)
            left_out[name] = len(part) - len(held_out[name])
            unknown = f"; {left_out[name]:,} left out, as training lacks their user or item"
            note(f"{name}: {_counts(held_out[name])}" + unknown * (left_out[name] > 0))
        return Parts(data, held_out.get("validation"), held_out.get("test"), left_out)

    def last(
        self, files: list[str], columns: Columns, types: "Mapping[str, pl.DataType]"
    ) -> "Interactions":
        """The last part: that to test on."""
        data = self.read(files, columns, types)
        return data if self.split is None else self._split(data)[-1]

    def _split(self, data: "Interactions") -> tuple["Interactions", ...]:
        from mixedals import split_at_random, split_by_time

        fractions = numbers(self.fractions, "--fractions")
        if len(fractions) not in (2, 3) or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
            raise typer.BadParameter(
                f"{self.fractions!r} must be two or three positive numbers with the sum 1",
                param_hint="--fractions",
            )
        if self.split == Split.time:
            return split_by_time(data, fractions)
        return split_at_random(data, fractions, self.split_seed)


def _counts(data: "Interactions") -> str:
    return f"{len(data):,} ratings by {data.n_users:,} users of {data.n_items:,} items"


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Numbers as they are typed: 0.8,0.1,0.1."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be numbers with commas between them", param_hint=option
        ) from error
