"""Columns of frames, arrays and files: found by name, read in every format."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_interactions import COLUMNS, assert_same, frame

from mixedals import Interactions
from mixedals._columns import columns_of_files


@pytest.mark.parametrize(
    "names",
    [
        ("USER_ID", "Product-ID", "Stars", "ts", "Weight"),
        ("uid", "asin", "overall", "Date", "WEIGHT"),
        ("visitorid", "itemid", "score", "Time", "weight"),
    ],
)
def test_columns_are_recognised_whatever_their_case(names):
    row = ([1], [2], [3.0], [4], [5.0])
    data = Interactions.from_frame(pl.DataFrame(dict(zip(names, row, strict=True))))
    assert data.to_frame().rows() == [(1, 2, 3.0, 4, 5.0)]
    assert data.columns == dict(zip(COLUMNS, names, strict=True))


def test_given_columns_come_first_and_false_leaves_one_out():
    df = pl.DataFrame({"user": [1], "user_id": [2], "item": [3], "n": [4], "weight": [-1]})
    data = Interactions.from_frame(df, user="user_id", rating="n", weight=False)
    assert data.to_frame().rows() == [(2, 3, 4.0)]


@pytest.mark.parametrize(
    ("columns", "given_names", "message"),
    [
        (
            "user item",
            {},
            "no column is recognised as the ratings.*explicit.*'user', 'item'.*rating=",
        ),
        ("who item rating", {}, "no column is recognised as the users.*'who'.*user="),
        ("user uid item rating", {}, "several columns could be the users: 'user', 'uid'.*user="),
        ("user item rating date ts", {}, "several columns could be the timestamps.*timestamp="),
        ("user item rating", {"user": "User"}, "no column 'User'.*'user', 'item', 'rating'"),
        ("user item rating", {"user": "item"}, "two roles"),
    ],
)
def test_columns_that_are_not_clear_are_an_error(columns, given_names, message):
    df = pl.DataFrame({name: [1] for name in columns.split()})
    with pytest.raises(ValueError, match=message):
        Interactions.from_frame(df, **given_names)


def test_what_is_not_a_frame_is_an_error():
    with pytest.raises(TypeError, match=r"list isn't a frame.*from_arrays"):
        Interactions.from_frame([1, 2])


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


def test_masked_entries_are_missing():
    ratings = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ValueError, match="1 of 2 rows have a rating"):
        Interactions.from_arrays([1, 2], [1, 1], ratings)
    with pytest.raises(ValueError, match="1 of 2 rows have no user"):
        Interactions.from_arrays(np.ma.array([1, 2], mask=[True, False]), [1, 1], [1.0, 2.0])


def test_columns_may_have_numbers_for_names():
    frame = pd.DataFrame({0: [1, 2], 1: [1, 1], 2: [3.0, 4.0]})
    assert len(Interactions.from_frame(frame, user=0, item=1, rating=2)) == 2


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
        with pytest.raises(ValueError, match=f"can't read .*{name}.*from_frame"):
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


def test_ids_that_are_to_be_text_are_so_also_where_a_file_is_read_again(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n007,01,3\n7,1,great\n")
    given = {"user": None, "item": None, "rating": None}
    types = {"user": pl.String(), "item": pl.Int64()}
    columns, _ = columns_of_files(path, given, types)
    assert columns["user"].to_list() == ["007", "7"]
    assert columns["item"].to_list() == [1, 1]
    assert columns["rating"].to_list() == ["3", "great"]


def test_text_among_ratings_is_counted_and_the_first_shown():
    frame = {"user": ["a", "b", "c"], "item": [1, 2, 3], "rating": ["4", "great", "bad"]}
    with pytest.raises(ValueError, match=r"2 of 3 rows.*isn't a number.*row 1.*rating='great'"):
        Interactions.from_frame(frame)


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
