"""The data sets that have a name: what they are, how they are laid out, where they are."""

from dataclasses import dataclass

from mixedals.datasets.movielens import COLONS, COMMAS, TABS, MovieLensLayout
from mixedals.datasets.netflix import NetflixLayout

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_NETFLIX = (
    "Netflix doesn't give it out any more and forbids others to. The Internet Archive keeps "
    "nf_prize_dataset.tar.gz, Kaggle has it as netflix-inc/netflix-prize-data"
)


@dataclass(frozen=True)
class DataSet:
    """A data set with a name.

    Attributes
    ----------
    name
        What it is called here.
    title
        What it is.
    ratings
        How many ratings it has; None where that changes.
    layout
        How its files are laid out; None for what is generated.
    url
        The zip that may be downloaded; None where there is none.
    md5
        The zip's checksum; None where the set changes, so that its publisher's file tells.
    elsewhere
        Where it is to be had, if it can't be fetched.
    """

    name: str
    title: str
    ratings: int | None
    layout: MovieLensLayout | NetflixLayout | None
    url: str | None = None
    md5: str | None = None
    elsewhere: str | None = None


def _movielens(
    size: str, ratings: int | None, layout: MovieLensLayout, md5: str | None = None
) -> DataSet:
    title = f"MovieLens {size.replace('-', ' ') if ratings is None else size.upper()}"
    return DataSet(f"ml-{size}", title, ratings, layout, f"{_GROUPLENS}ml-{size}.zip", md5)


DATASETS = {
    dataset.name: dataset
    for dataset in (
        _movielens("100k", 100_000, TABS, "0e33842e24a9c977be4e0107933c0723"),
        _movielens("1m", 1_000_209, COLONS, "c4d9eecfca2ab87c1945afe126590906"),
        _movielens("10m", 10_000_054, COLONS, "ce571fd55effeba0271552578f2648bd"),
        _movielens("20m", 20_000_263, COMMAS, "cd245b17a1ae2cc31bb14903e1204af3"),
        _movielens("25m", 25_000_095, COMMAS, "6b51fb2759a8657d3bfcbfc42b592ada"),
        _movielens("32m", 32_000_204, COMMAS, "d472be332d4daa821edc399621853b57"),
        _movielens("latest", None, COMMAS),
        _movielens("latest-small", None, COMMAS),
        DataSet("netflix", "Netflix Prize", 100_480_507, NetflixLayout(), elsewhere=_NETFLIX),
        DataSet("synthetic", "Made up, with planted mixed dimensions", 600_000, None),
    )
}


def named(name: str) -> DataSet:
    """The data set of that name."""
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]
