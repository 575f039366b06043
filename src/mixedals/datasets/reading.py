"""From a data set's files, as they were published, to ratings and titles."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl

from mixedals._atomic import replacing
from mixedals.datasets.archive import members, whole
from mixedals.datasets.movielens import MovieLensLayout
from mixedals.datasets.netflix import NetflixLayout
from mixedals.datasets.registry import DataSet, named
from mixedals.interactions import Interactions
from mixedals.synthetic import generate_ratings

_Layout = MovieLensLayout | NetflixLayout

# Of files that sets come in, in the order in which they are taken off a name.
_SUFFIXES = (".gz", ".tgz", ".tar", ".zip", ".dat", ".data", ".csv", ".txt")


@dataclass(frozen=True)
class Ratings:
    """What a data set holds.

    Attributes
    ----------
    interactions
        The ratings.
    titles : polars.DataFrame or None
        ``item`` and ``title``, where the set has titles.
    """

    interactions: Interactions
    titles: pl.DataFrame | None


def read(name: str, path: str | os.PathLike[str] | None = None) -> Ratings:
    """The ratings of a data set by its name.

    Parameters
    ----------
    name
        One of ``DATASETS``.
    path
        Its folder or archive, which is read without being unpacked; or the Parquet file that
        :func:`convert` made of it. None for ``synthetic``.

    Examples
    --------
    >>> read("synthetic").interactions.n_items
    3000
    """
    dataset = named(name)
    if dataset.layout is None:
        if path is not None:
            raise ValueError(f"{name} is generated: it is in no file")
        return Ratings(generate_ratings(), None)
    path = _checked(dataset, path)
    if path.suffix == ".parquet":
        return Ratings(Interactions.read(path), None)
    ratings, titles = _frames(dataset.layout, path)
    return Ratings(Interactions.from_frame(ratings), titles)


def convert(
    name: str, path: str | os.PathLike[str], to: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write a data set as Parquet, which every command and library reads at once.

    Parameters
    ----------
    name, path
        As in :func:`read`.
    to
        The file for the ratings; by default ``path`` with the suffix ``.parquet``, in place of
        that of an archive or a text file.

    Returns
    -------
    list of Path
        The file of the ratings and, where there are titles, one beside it that ends in
        ``-titles.parquet``.
    """
    dataset = named(name)
    if dataset.layout is None:
        raise ValueError(f"{name} is generated: there is nothing to convert")
    path = _checked(dataset, path)
    if to is None:
        to = _parquet_beside(path.resolve())
    target = Path(to)
    ratings, titles = _frames(dataset.layout, path)
    written = {target: ratings}
    if titles is not None:
        written[target.with_name(f"{target.stem}-titles.parquet")] = titles
    for file, frame in written.items():
        with replacing(file) as temporary:
            frame.write_parquet(temporary)
    return list(written)


def _parquet_beside(path: Path) -> Path:
    name = path.name
    if path.is_file():
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
    return path.with_name(f"{name}.parquet")


def _checked(dataset: DataSet, path: str | os.PathLike[str] | None) -> Path:
    where = (
        f"mixedals datasets fetch {dataset.name} downloads it"
        if dataset.elsewhere is None
        else dataset.elsewhere
    )
    if path is None:
        raise ValueError(f"{dataset.name} needs the path of its folder or archive; {where}")
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no {str(path)!r}; {where}")
    return Path(path)


def _frames(layout: _Layout, path: Path) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Ratings and titles of the files below a path."""
    titles: dict[int, str] = {}
    names: list[str] = []

    def files_of_ratings() -> Iterator[tuple[str, IO[bytes]]]:
        wanted = lambda name: layout.is_ratings(name) or layout.is_titles(name)  # noqa: E731
        for name, stream in members(path, wanted):
            if layout.is_titles(name):
                for item, title in layout.titles(stream):
                    if titles.setdefault(item, title) != title:
                        both = f"{titles[item]!r} and {title!r}"
                        raise ValueError(f"{path} has two titles of {item}: {both}")
                continue
            if name in names:
                raise ValueError(f"{path} has several files {name}: give the folder of one set")
            names.append(name)
            yield name, stream

    with whole(path):
        parts = list(layout.ratings(files_of_ratings()))
    if not names:
        raise ValueError(f"{path} has no {layout.files}, which this data set consists of")
    if not parts:
        raise ValueError(f"{path}: {names[0]} is empty")
    schema = {"item": pl.Int32, "title": pl.String}
    frame = pl.DataFrame([*titles.items()], schema, orient="row") if titles else None
    return pl.concat(parts), frame
