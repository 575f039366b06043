import math
import pickle
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedals.interactions import Interactions

few_examples = settings(max_examples=40, deadline=None)

COLUMNS = ("user", "item", "rating", "timestamp", "weight")
HALF_STARS = st.integers(1, 10).map(lambda stars: stars / 2)
ROW = st.tuples(
    st.sampled_from(["ann", "bob", "cleo", "dan"]),
    st.integers(-2, 3),
    HALF_STARS,
    st.integers(-3, 3),
    st.integers(0, 8).map(lambda eighths: eighths / 8),
)
ROWS = st.lists(ROW, min_size=1, max_size=30)
DISTINCT = st.lists(ROW, min_size=1, max_size=20, unique_by=lambda row: row[:2])


def make(rows, **options):
    return Interactions.from_arrays(*map(list, zip(*rows, strict=True)), **options)


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
    for name in ("indptr", "indices", "values", "weights"):
        for view in ("by_user", "by_item"):
            np.testing.assert_array_equal(
                getattr(getattr(one, view), name), getattr(getattr(other, view), name)
            )


@few_examples
@given(DISTINCT, st.randoms(use_true_random=False))
def test_any_order_of_the_input_gives_the_same_interactions(rows, random):
    data = make(rows)
    assert data.to_frame().rows() == sorted(rows)
    assert_same(data, make(random.sample(rows, len(rows))))


@few_examples
@given(DISTINCT)
def test_both_views_hold_every_rating(rows):
    data = make(rows)
    assert len(data) == len(rows)
    for csr, rows_of, columns_of in (
        (data.by_user, data.users, data.items),
        (data.by_item, data.items, data.users),
    ):
        assert (csr.n_rows, csr.n_columns) == (len(rows_of), len(columns_of))
        ids = np.repeat(rows_of, np.diff(csr.indptr)), columns_of[csr.indices]
        pairs = list(zip(*ids, strict=True))
        assert pairs == sorted(pairs)
        if csr is data.by_item:
            pairs = [(user, item) for item, user in pairs]
        expected = {row[:2]: row for row in rows}
        for pair, value, weight in zip(pairs, csr.values, csr.weights, strict=True):
            assert (value, weight) == (expected[pair][2], expected[pair][4])


@few_examples
@given(ROWS)
def test_last_keeps_the_latest_and_of_equally_late_ones_the_last(rows):
    twin = {}
    for row in rows:
        if row[:2] not in twin or row[3] >= twin[row[:2]][3]:
            twin[row[:2]] = row
    assert make(rows, duplicates="last").to_frame().rows() == sorted(twin.values())
    untimed = make([row[:3] for row in rows], duplicates="last")
    assert untimed.to_frame().rows() == sorted({row[:2]: row[:3] for row in rows}.values())


@few_examples
@given(ROWS)
def test_mean_weighs_ratings_by_their_weights(rows):
    twin = {}
    for row in rows:
        twin.setdefault(row[:2], []).append(row[2:])
    found = make(rows, duplicates="mean").to_frame().rows()
    assert [row[:2] for row in found] == sorted(twin)
    for user, item, rating, timestamp, weight in found:
        ratings, timestamps, weights = zip(*twin[user, item], strict=True)
        shares = weights if sum(weights) else [1] * len(weights)
        mean = sum(r * w for r, w in zip(ratings, shares, strict=True)) / sum(shares)
        assert math.isclose(rating, mean, rel_tol=1e-6)
        assert (timestamp, weight) == (max(timestamps), sum(weights))


def test_weights_that_sum_beyond_single_precision_are_an_error():
    with pytest.raises(ValueError, match="weights of a pair's ratings sum to more"):
        Interactions.from_arrays([1, 1], [1, 1], [1, 2], weights=[3e38] * 2, duplicates="mean")


def test_mean_without_weights_or_timestamps():
    data = make([(1, 1, 2), (2, 1, 5), (1, 1, 3)], duplicates="mean")
    assert data.to_frame().rows() == [(1, 1, 2.5), (2, 1, 5.0)]


def test_frames_arrays_and_a_matrix_of_the_same_ratings_agree():
    df = frame()
    data = Interactions.from_frame(df)
    pandas = df.to_pandas()
    others = [
        df.lazy(),
        df.to_arrow(),
        pandas,
        pandas.convert_dtypes(),
        pandas.set_index(pandas.index[::-1]),
        df.to_dict(as_series=False),
        {name: df[name].to_numpy() for name in df.columns},
        pl.concat([df[:10], df[10:]], rechunk=False),
        pa.concat_tables([df[:10].to_arrow(), df[10:].to_arrow()]),
    ]
    for other in others:
        assert_same(data, Interactions.from_frame(other))
    assert_same(data, Interactions.from_arrays(*df))
    matrix = sp.coo_array(
        (df["rating"].to_numpy(), (df["userId"].to_numpy(), (df["movieId"] - 2**40).to_numpy()))
    )
    data = Interactions.from_frame(df.with_columns(pl.col("movieId") - 2**40), timestamp=False)
    for form in (matrix, matrix.tocsr(), matrix.tocsc(), sp.csr_matrix(matrix)):
        of_matrix = Interactions.from_matrix(form)
        assert of_matrix.to_frame().equals(data.to_frame())
        assert of_matrix.n_users == matrix.shape[0]


@pytest.mark.parametrize("column", ["plain", "strings", "missing"])
def test_pandas_works_without_pyarrow(monkeypatch, column):
    df = pd.DataFrame({"user": ["a", "b"], "item": [1, 2], "rating": [1.0, 2.0]})
    df["item"] = df["item"].astype("Int64")
    df["user"] = df["user"].astype("category" if column == "strings" else object)
    if column == "missing":
        df.loc[1, "user"] = None
    real_init = pl.Series.__init__

    def without_pyarrow(self, name=None, *args, **kwargs):
        if isinstance(name, pd.Series):
            raise ImportError("polars wants pyarrow here")
        real_init(self, name, *args, **kwargs)

    monkeypatch.setattr(pl.Series, "__init__", without_pyarrow)
    if column == "missing":
        with pytest.raises(ValueError, match="1 of 2 rows have no user"):
            Interactions.from_frame(df)
    else:
        assert Interactions.from_frame(df).to_frame().rows() == [("a", 1, 1.0), ("b", 2, 2.0)]


def test_a_matrix_keeps_empty_rows_and_stored_zeros():
    data = Interactions.from_matrix(sp.csr_array(([0.0, 2.0], [3, 1], [0, 1, 1, 2]), shape=(3, 5)))
    assert data.to_frame().rows() == [(0, 3, 0.0), (2, 1, 2.0)]
    assert data.users.tolist() == [0, 1, 2]
    assert data.items.tolist() == [0, 1, 2, 3, 4]
    assert data.by_item.indptr.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.subset([True, True]).items.tolist() == [1, 3]


def test_a_matrix_with_more_rows_than_positions_is_an_error():
    with pytest.raises(ValueError, match=r"\(8589934592, 1\).*at most 2\^31 - 1"):
        Interactions.from_matrix(sp.coo_array(([1.0], ([0], [0])), shape=(2**33, 1)))


@pytest.mark.parametrize("matrix", [np.eye(2), sp.coo_array([1.0, 2.0]), [[1]]])
def test_other_matrices_are_an_error(matrix):
    with pytest.raises(TypeError, match="two-dimensional SciPy sparse"):
        Interactions.from_matrix(matrix)


@few_examples
@given(DISTINCT)
def test_a_frame_round_trip_gives_the_same_interactions(rows):
    data = make(rows)
    assert_same(data, Interactions.from_frame(data.to_frame()))


@few_examples
@given(DISTINCT)
def test_pickles_give_the_same_interactions(rows):
    data = make(rows)
    copy = pickle.loads(pickle.dumps(data))
    assert_same(data, copy)
    assert repr(copy) == repr(data)
    with pytest.raises(ValueError, match="read-only"):
        copy.timestamps[0] = 1


def test_ids_of_many_types():
    for users in (
        np.array([2**31 + 5, 7], dtype=np.int64),
        np.array([2**63 + 5, 7], dtype=np.uint64),
        np.array([-5, 7], dtype=np.int32),
        np.array(["b", "a"], dtype=object),
        [b"b", b"a"],
        [uuid.uuid4(), uuid.uuid4()],
        np.array([1.5, 0.5]),
        [True, False],
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]"),
    ):
        data = Interactions.from_arrays(users, [1, 2], [1, 2])
        assert data.users.tolist() == sorted(np.asarray(users).tolist())
        if isinstance(users, np.ndarray):
            assert data.users.dtype == users.dtype
        assert len(data.to_frame()) == 2


def test_nothing_can_be_changed():
    data = make([(1, 1, 1.0, 5)])
    for array in (data.users, data.timestamps, data.by_user.values, data.by_item.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        data.timestamps = None


def test_the_input_stays_the_caller_s():
    ratings = np.array([1.0, 2.0], dtype=np.float32)
    times = np.array([1, 2])
    data = Interactions.from_arrays([1, 2], [1, 2], ratings, times)
    ratings[:] = times[:] = 9
    assert data.to_frame().rows() == [(1, 1, 1.0, 1), (2, 2, 2.0, 2)]


def test_repr_counts_and_tells_the_columns():
    text = repr(Interactions.from_frame(frame()))
    assert text == (
        "Interactions: 1,000 ratings by 60 users of 50 items (33.33% filled), with timestamps, "
        "from columns user='userId', item='movieId', rating='rating', timestamp='timestamp'"
    )
    assert "from columns" not in repr(make([(1, 1, 1)]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rating": [1, math.nan, None]}, "2 of 3 rows have a rating.*row 1.*user=1, item=1"),
        ({"rating": [1.0, 2.0, math.inf]}, "1 of 3 rows have a rating.*row 2.*rating=inf"),
        ({"rating": [math.inf, -math.inf, 3e38]}, "2 of 3 rows have a rating.*row 0"),
        ({"rating": [1.0, 1e39, 2.0]}, "1 of 3 rows have a rating.*32 bits.*rating=1e\\+39"),
        ({"user": [1, None, 2]}, "1 of 3 rows have no user.*row 1.*user=None"),
        ({"item": [1.0, math.nan, 2.0]}, "1 of 3 rows have no item.*row 1.*item=nan"),
        ({"user": [uuid.UUID(int=1), None, None]}, "2 of 3 rows have no user"),
        ({"user": [None, None, None]}, "3 of 3 rows have no user"),
        ({"weight": [1, -1, 0]}, "1 of 3 rows have a negative weight.*row 1.*weight=-1"),
        ({"weight": [1, None, 0]}, "1 of 3 rows have a weight that isn't a finite number"),
        ({"weight": [1.0, math.nan, math.inf]}, "2 of 3 rows have a weight"),
        ({"timestamp": [1, None, 0]}, "1 of 3 rows have a timestamp that is missing"),
        ({"timestamp": [1.0, math.nan, 0.5]}, "2 of 3 rows have a timestamp.*row 1"),
        ({"timestamp": ["yesterday", "today", "now"]}, "timestamps are text.*leave them out"),
        ({"rating": [1, 2]}, "differ in length: user 3, item 3, rating 2"),
        ({name: [] for name in COLUMNS}, "no ratings: the input is empty"),
        ({"user": [1, 1, 1]}, None),
    ],
)
def test_rows_that_cannot_be_used_are_an_error_that_shows_the_first(columns, message):
    good = {"user": [1, 1, 2], "item": [0, 1, 2], "rating": [1, 2, 3]}
    if message is None:
        assert len(Interactions.from_frame(good | columns)) == 3
    else:
        with pytest.raises(ValueError, match=message):
            Interactions.from_frame(good | columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rating": ["1", "2"]}, "ratings must be numbers, but are of type String"),
        ({"weight": ["1", "2"]}, "weights must be numbers"),
        ({"timestamp": [[1], [2]]}, "timestamps must be integers, dates or datetimes"),
        ({"user": [[1], [2]]}, "ids can't be of type List"),
    ],
)
def test_columns_of_a_wrong_type_are_an_error(columns, message):
    with pytest.raises(TypeError, match=message):
        Interactions.from_frame({"user": [1, 2], "item": [0, 1], "rating": [1, 2]} | columns)


def test_duplicates_are_an_error_that_shows_the_first_pair():
    rows = [("b", 7, 1), ("a", 5, 1), ("b", 7, 2), ("b", 8, 2), ("b", 7, 3)]
    message = (
        r"2 of 5 rows.*user='b', item=.*7.* in rows 0 and 2.*"
        r'duplicates="last".*duplicates="mean"'
    )
    with pytest.raises(ValueError, match=message):
        make(rows)
    with pytest.raises(ValueError, match="duplicates must be one of"):
        make(rows, duplicates="first")
    with pytest.raises(ValueError, match=r"2 of 3 rows.*rows 0 and 1"):
        Interactions.from_matrix(sp.coo_array(([1, 2, 3], ([0, 0, 0], [1, 1, 1]))))


@pytest.mark.parametrize(
    "timestamps",
    [
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[us]"),
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]"),
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[s]"),
        ["2020-01-02", "2020-01-01"],
        ["2020-01-01T10:00:01", "2020-01-01T10:00:00"],
        pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01"])).dt.tz_localize("UTC"),
        np.array([2.0, 1.0]),
        np.array([2, 1], dtype=np.uint8),
    ],
)
def test_timestamps_become_integers(timestamps):
    data = Interactions.from_arrays([1, 2], [1, 2], [1, 2], timestamps)
    assert data.timestamps.dtype == np.int64
    assert data.timestamps[0] > data.timestamps[1]


@few_examples
@given(DISTINCT, st.data())
def test_a_subset_has_the_ratings_chosen_and_no_other_ids(rows, data):
    whole = make(rows)
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    part = whole.subset(np.array(mask))
    kept = [row for row, chosen in zip(sorted(rows), mask, strict=True) if chosen]
    assert part.to_frame().rows() == kept
    assert part.users.tolist() == sorted({row[0] for row in kept})
    assert part.items.tolist() == sorted({row[1] for row in kept})
    positions = data.draw(st.permutations(np.flatnonzero(mask).tolist()))
    assert_same(part, whole.subset(np.array(positions, dtype=np.int64)))


@pytest.mark.parametrize(
    ("which", "error", "message"),
    [
        ([True], ValueError, "one entry for each of the 2 ratings"),
        ([2], ValueError, "from 0 to 1"),
        ([-1], ValueError, "from 0 to 1"),
        ([0, 0], ValueError, "distinct"),
        ([0.5], TypeError, "mask or a one-dimensional array of positions"),
        ([[0]], TypeError, "mask or a one-dimensional array of positions"),
    ],
)
def test_subsets_that_make_no_sense_are_an_error(which, error, message):
    with pytest.raises(error, match=message):
        make([(1, 1, 1), (2, 2, 2)]).subset(which)


def test_binarise_drops_what_lies_between():
    rows = [(1, i, rating, i) for i, rating in enumerate([1, 2, 2.5, 3, 4, 5])]
    data = make(rows)
    assert data.binarise().to_frame().rows() == [
        (1, 0, 0, 0),
        (1, 1, 0, 1),
        (1, 4, 1, 4),
        (1, 5, 1, 5),
    ]
    assert data.binarise(2.5, 3).by_user.values.tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match=r"at_most .* less than at_least"):
        data.binarise(4, 4)


@few_examples
@given(DISTINCT, st.integers(0, 4), st.integers(0, 4))
def test_at_least_counts_once(rows, user, item):
    users, items = [row[0] for row in rows], [row[1] for row in rows]
    kept = [row for row in rows if users.count(row[0]) >= user and items.count(row[1]) >= item]
    assert make(rows).at_least(user, item).to_frame().rows() == sorted(kept)


@few_examples
@given(DISTINCT, DISTINCT)
def test_restrict_to_keeps_pairs_of_known_ids(rows, others):
    users, items = {row[0] for row in others}, {row[1] for row in others}
    kept = [row for row in rows if row[0] in users and row[1] in items]
    assert make(rows).restrict_to(make(others)).to_frame().rows() == sorted(kept)


def test_restrict_to_ids_of_another_type_is_an_error():
    with pytest.raises(TypeError, match=r"type str.*type int64"):
        make([(1, 1, 1)]).restrict_to(make([("a", 1, 1)]))
