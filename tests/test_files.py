"""Ratings from files."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixedals import Interactions


def frame(n=1000):
    rng = np.random.default_rng(0)
    pairs = rng.choice(60 * 50, n, replace=False)
    return pl.DataFrame(
        {
            "userId": pairs // 50 * 3,
            "movieId": pairs % 50 + 2**40,
            "rating": rng.integers(1, 11, n) / 2,
            "timestamp": rng.integers(0, 2**33, n),
        }
    )


def assert_same(one, other):
    assert one.user_vocabulary == other.user_vocabulary
    assert one.item_vocabulary == other.item_vocabulary
    assert one.to_frame().equals(other.to_frame())


WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".tsv": lambda df, path: df.write_csv(path, separator="\t"),
    ".parquet": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".feather": pl.DataFrame.write_ipc,
    ".ipc": pl.DataFrame.write_ipc,
    ".ndjson": pl.DataFrame.write_ndjson,
    ".jsonl": pl.DataFrame.write_ndjson,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_files_of_every_format(suffix, tmp_path):
    df = frame().with_columns(title=pl.lit("not needed"))
    WRITERS[suffix](df, tmp_path / f"all{suffix}")
    data = Interactions.read(tmp_path / f"all{suffix}")
    assert_same(data, Interactions.from_frame(df))
    (tmp_path / "parts").mkdir()
    for part in range(3):
        WRITERS[suffix](df[part::3], tmp_path / "parts" / f"{part}{suffix}")
    assert_same(data, Interactions.read(f"{tmp_path}/**/[0-9]{suffix}"))
    files = [tmp_path / "parts" / f"{part}{suffix}" for part in range(3)]
    assert_same(data, Interactions.read(files, user="userId"))


def test_halves_behind_many_whole_ratings(tmp_path):
    lines = ["who,what,points", *(f"{i},1,3" for i in range(20_000)), "20000,1,4.5"]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    data = Interactions.read(tmp_path / "r.csv", user="who", item="what", rating="points")
    assert data.by_user.values[-1] == 4.5


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_name_that_looks_like_a_pattern_is_a_file_first(tmp_path, suffix):
    path = tmp_path / f"ratings[1]*{suffix}"
    WRITERS[suffix](frame(), path)
    assert len(Interactions.read(path)) == 1000


def test_files_that_cannot_be_read_are_an_error(tmp_path, monkeypatch):
    (tmp_path / "ratings.xlsx").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "bad.csv").write_text("user,item,rating\n1,1,1\n1,2,3,4,5\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"\.xlsx.*\.csv, \.tsv, \.parquet"):
        Interactions.read(tmp_path / "ratings.xlsx")
    with pytest.raises(ValueError, match="one format"):
        Interactions.read([tmp_path / "ratings.xlsx", tmp_path / "empty.csv"])
    with pytest.raises(ValueError, match=r"folder is a folder"):
        Interactions.read(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match=r"no file .*missing-\*\.csv"):
        Interactions.read(tmp_path / "missing-*.csv")
    for name in ("empty.csv", "bad.csv"):
        with pytest.raises(ValueError, match=f"can't read .*{name}.*(?s:.*)from_frame"):
            Interactions.read(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("user,item,rating\n1,2,3\n")
    assert len(Interactions.read("g*.csv")) == 1


def test_late_lines_of_a_file_may_need_a_wider_type_than_the_first(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(
        "user,item,rating\n" + "".join(f"{u:05},1,3\n" for u in range(10_001)) + "x,1,3.5\n"
    )
    data = Interactions.read(path)
    assert data.users[[0, -1]].tolist() == ["00000", "x"]
    assert data.by_user.values.max() == 3.5


@given(st.data())
def test_broken_parquet_is_an_error_of_ours_or_no_harm(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("broken") / "ratings.parquet"
    frame(20).write_parquet(path)
    raw = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=5)):
        raw[at] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        Interactions.read(path)
    except (ValueError, TypeError):
        pass
    finally:
        path.unlink()
