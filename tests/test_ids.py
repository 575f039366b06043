import datetime
import pickle
import uuid
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedals import _kernels
from mixedals._columns import to_series
from mixedals._ids import Vocabulary, encode

few_examples = settings(max_examples=40, deadline=None)

INTEGERS = {
    dtype: st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
NUMBERS = {
    **INTEGERS,
    "float32": st.floats(allow_nan=False, width=32).map(lambda x: x + 0.0),
    "float64": st.floats(allow_nan=False).map(lambda x: x + 0.0),
    "bool": st.booleans(),
}
OBJECTS = {
    "str": st.text(st.characters(codec="utf-8")),
    "bytes": st.binary(),
    "uuid": st.uuids(),
    "date": st.dates(),
    "datetime64[us]": st.datetimes(),
}


def vocabulary(ids):
    return encode(to_series(ids, "ids"), 2)[0]


def kinds_and_ids(min_size=1):
    """A kind and ids of it, numbers as arrays of their type."""
    numbers = [
        st.lists(values, min_size=min_size).map(lambda v, k=kind: (k, np.array(v, dtype=k)))
        for kind, values in NUMBERS.items()
    ]
    objects = [
        st.lists(values, min_size=min_size).map(lambda v, k=kind: (k, v))
        for kind, values in OBJECTS.items()
    ]
    return st.one_of(*numbers, *objects)


@few_examples
@given(kinds_and_ids())
def test_encoding_and_decoding_give_the_ids_back(drawn):
    kind, ids = drawn
    made, positions = encode(to_series(ids, "ids"), 2)
    values = list(ids)
    assert made.kind == kind
    assert len(made) == len(set(values))
    assert positions.dtype == np.int32
    given_back = made.ids[positions]
    if kind in NUMBERS:
        assert given_back.dtype == ids.dtype
    assert given_back.tolist() == [
        np.datetime64(v).item() if kind[:4] == "date" else v for v in values
    ]
    assert made.decode(positions).to_list() == pl.Series(values, dtype=pl.Object).to_list()
    assert list(made.ids) == sorted(made.ids)
    np.testing.assert_array_equal(made.encode(ids), positions)
    np.testing.assert_array_equal(made.encode(list(ids)), positions)
    assert made.encode(ids[0]).tolist() == [positions[0]]


@few_examples
@given(kinds_and_ids())
def test_saved_arrays_and_pickles_give_the_vocabulary_back(drawn):
    made = vocabulary(drawn[1])
    arrays = made.to_arrays()
    assert all(array.dtype.kind in "iufb" for array in arrays.values())
    assert Vocabulary.from_arrays(made.kind, arrays) == made
    assert pickle.loads(pickle.dumps(made)) == made


@few_examples
@given(kinds_and_ids(), st.data())
def test_match_finds_what_a_dict_finds(drawn, data):
    whole = vocabulary(drawn[1])
    kept = data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
    part = whole.take(np.flatnonzero(kept))
    place = {value: i for i, value in enumerate(part.values)}
    assert part.match(whole).tolist() == [place.get(value, -1) for value in whole.values]
    assert (whole.match(part) == np.flatnonzero(kept)).all()


def test_few_queries_of_many_ids_and_many_queries_agree():
    rng = np.random.default_rng(0)
    for ids in (rng.integers(-(2**62), 2**62, 3000), [f"user {i}" for i in range(3000)]):
        made = vocabulary(ids)
        query = pl.concat(
            [made.values.sample(100, seed=1), pl.Series(["zz"] if made.kind == "str" else [7])]
        )
        many = made.encode(pl.concat([query] * 10))
        few = made.encode(query)
        np.testing.assert_array_equal(many, np.tile(few, 10))
        assert few[-1] == -1
        assert (few[:-1] >= 0).all()
        np.testing.assert_array_equal(made.ids[few[:-1]], query[:-1].to_numpy())


def test_strings_and_wide_integers_are_encoded_alike_for_any_order():
    rng = np.random.default_rng(0)
    wide = rng.integers(-(2**63), 2**63 - 1, 1000)
    for ids in (wide, wide.astype(str)):
        ids = ids[rng.integers(0, 1000, 5000)]
        one, two = vocabulary(ids), vocabulary(rng.permutation(ids))
        assert one == two
        assert one.ids.tolist() == sorted(set(ids.tolist()))


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_encoded_alike_by_any_number_of_threads(dtype, n_threads):
    ids = np.random.default_rng(0).integers(-70_000, 90_000, 600_000).astype(dtype)
    distinct, positions = np.unique(ids, return_inverse=True)
    found = _kernels.encode_integers(ids, n_threads)
    np.testing.assert_array_equal(found[0], distinct)
    np.testing.assert_array_equal(found[1], positions)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("positions_type", ["uint32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_take_is_numpy_s(dtype, positions_type, n_threads):
    values = np.arange(1000).astype(dtype)
    positions = np.random.default_rng(0).integers(0, 1000, 600_000).astype(positions_type)
    taken = _kernels.take(values, positions, n_threads)
    assert taken.dtype == values.dtype
    np.testing.assert_array_equal(taken, values[positions])
    positions[-1] = 1000
    with pytest.raises(ValueError, match="out of bounds"):
        _kernels.take(values, positions, n_threads)


def test_integers_compare_by_value_whatever_their_width():
    made = vocabulary(np.array([-1, 5, 2**31 - 1], dtype=np.int32))
    assert made.encode(np.array([5, -1, 2**40], dtype=np.int64)).tolist() == [1, 0, -1]
    assert made.encode(np.array([5, 2**63 + 1], dtype=np.uint64)).tolist() == [1, -1]
    assert made.encode(5).tolist() == made.encode(np.int8(5)).tolist() == [1]
    assert vocabulary(np.array([2**63 + 5, 5], dtype=np.uint64)).encode([5]).tolist() == [0]


def test_floats_of_another_width_must_be_equal():
    made = vocabulary(np.array([0.5, 0.1], dtype=np.float32))
    assert made.encode([0.5, 0.1]).tolist() == [1, -1]
    assert made.encode([float("nan"), None]).tolist() == [-1, -1]


@few_examples
@given(kinds_and_ids())
def test_a_forked_process_encodes_alike(drawn):
    _, ids = drawn
    made, positions = encode(to_series(ids, "ids"), 2)
    with mock.patch("mixedals._ids.forked", return_value=True):
        forked, positions_there = encode(to_series(ids, "ids"), 2)
    assert forked == made
    assert positions_there.tolist() == positions.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minus_zero_is_zero(dtype):
    made = vocabulary(np.array([-0.0, 1.0], dtype))
    assert made.kind == dtype
    assert [str(one) for one in made.ids.tolist()] == ["0.0", "1.0"]
    assert made.encode(np.array([-0.0, 0.0], dtype)).tolist() == [0, 0]
    assert made.keys().tolist() == vocabulary(np.array([0.0, 1.0], dtype)).keys().tolist()


def test_integers_beyond_64_bits_are_an_error():
    with pytest.raises(TypeError, match=r"must fit into 64 bits.*strings"):
        vocabulary([2**70])


def test_uuids_and_their_text_are_the_same_ids():
    ids = sorted(uuid.UUID(int=i) for i in (5, 77))
    made = vocabulary(np.array(ids, dtype=object))
    assert made.ids.tolist() == ids
    assert made.encode([str(ids[1]), ids[0]][:1]).tolist() == [1]
    assert made.decode(np.array([1, -1])).to_list() == [ids[1], None]
    assert vocabulary([str(i) for i in ids]).encode(ids).tolist() == [0, 1]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "unused", "a"])),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype=object),
        pd.Index(["b", "a", "b"]),
        pa.array(["b", "a", "b"]),
        pa.chunked_array([["b"], ["a", "b"]]),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        ("b", "a", "b"),
    ],
    ids=lambda column: f"{type(column).__module__}-{getattr(column, 'dtype', '')}",
)
def test_columns_of_strings_of_every_kind(column):
    made, positions = encode(to_series(column, "ids"), 2)
    assert made.kind == "str"
    assert made.ids.tolist() == ["a", "b"]
    assert positions.tolist() == [1, 0, 1]
    assert made.encode(column).tolist() == [1, 0, 1]


def test_uuids_in_pandas():
    ids = pd.Series([uuid.UUID(int=2), uuid.UUID(int=1)])
    assert vocabulary(ids).ids.tolist() == [uuid.UUID(int=1), uuid.UUID(int=2)]


def test_ids_cannot_be_changed():
    made = vocabulary([2, 1])
    with pytest.raises(ValueError, match="read-only"):
        made.ids[0] = 5


def test_vocabularies_of_different_types_differ():
    ids = np.array([1, 2])
    assert vocabulary(ids) != vocabulary(ids.astype(np.int32))
    assert vocabulary(ids) != "ids"
    assert repr(vocabulary(ids)) == "Vocabulary: 2 ids of type int64"


def test_keys_are_the_same_for_the_same_ids():
    narrow, wide = np.array([-5, 7], dtype=np.int32), np.array([-5, 7], dtype=np.int64)
    np.testing.assert_array_equal(vocabulary(narrow).keys(), wide.view(np.uint64))
    np.testing.assert_array_equal(vocabulary(wide).keys(), wide.view(np.uint64))
    assert vocabulary(np.array([2**63], dtype=np.uint64)).keys().tolist() == [2**63]

    def fnv(text):
        key = 0xCBF29CE484222325
        for byte in text:
            key = (key ^ byte) * 0x100000001B3 % 2**64
        return key

    one = uuid.UUID(int=1)
    assert vocabulary(["a", "é"]).keys().tolist() == [fnv(b"a"), fnv("é".encode())]
    assert vocabulary([b"\xff"]).keys().tolist() == [fnv(b"\xff")]
    assert vocabulary([one]).keys().tolist() == [fnv(str(one).encode())]
    assert vocabulary([0.5]).keys().tolist() == [fnv(b"0.5")]
    assert vocabulary([datetime.date(2020, 1, 2)]).keys().tolist() == [fnv(b"2020-01-02")]


def test_nanoseconds_have_keys_of_their_own():
    moments = np.datetime64("2020-01-01", "ns") + np.arange(3)
    vocabulary, _ = encode(pl.Series(moments), 1)
    assert len(set(vocabulary.keys().tolist())) == 3
    coarse, _ = encode(pl.Series(moments[:1].astype("datetime64[us]")), 1)
    assert coarse.keys()[0] == vocabulary.keys()[0]


def test_many_queries_and_few_agree(monkeypatch):
    for values in (np.arange(0, 900, 3), [f"u{i}" for i in range(300)], np.arange(300) / 7):
        vocabulary, _ = encode(pl.Series(values), 1)
        strange = vocabulary.values[:1] + vocabulary.values[-1:]
        asked = pl.concat([vocabulary.values.gather([5, 0, 299]), strange])
        few = vocabulary.encode(asked)
        monkeypatch.setattr("mixedals._ids._FEW", 0)
        np.testing.assert_array_equal(vocabulary.encode(asked), few)
        monkeypatch.undo()


def test_an_empty_vocabulary_knows_nobody():
    empty = vocabulary([1]).take(np.array([], dtype=np.int64))
    assert empty.encode([1, 2]).tolist() == [-1, -1]
    assert empty.keys().tolist() == []
    assert vocabulary([1]).encode([]).tolist() == []
    text = vocabulary(["a"]).take(np.array([], dtype=np.int64))
    assert Vocabulary.from_arrays("str", text.to_arrays()) == text


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["5"], "str"),
        ([5.0], "float64"),
        ([b"5"], "bytes"),
        ([True], "bool"),
        ([uuid.UUID(int=5)], "uuid"),
    ],
)
def test_ids_of_another_type_are_an_error(asked, named):
    with pytest.raises(TypeError, match=f"type int64.*type {named}.*convert"):
        vocabulary([5]).encode(asked)


@pytest.mark.parametrize(
    "ids",
    [
        [[1], [2]],
        [{"a": 1}],
        [object()],
        [1 + 2j],
        [datetime.timedelta(1)],
        [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
        [uuid.UUID(int=1), "text"],
    ],
)
def test_other_types_are_an_error_that_lists_the_allowed_ones(ids):
    with pytest.raises(TypeError, match=r"ids .*type"):
        vocabulary(ids)


def test_mixed_types_are_an_error():
    with pytest.raises(TypeError, match="one type"):
        vocabulary([1, "a"])


def test_two_dimensions_are_an_error():
    with pytest.raises(ValueError, match="one dimension"):
        vocabulary(np.ones((2, 2)))


def packed(raw, offsets):
    return {
        "bytes": np.frombuffer(raw, dtype=np.uint8),
        "offsets": np.array(offsets, dtype=np.int64),
    }


@pytest.mark.parametrize(
    ("kind", "arrays"),
    [
        ("int128", {"ids": np.array([1])}),
        ("int64", {}),
        ("int64", {"ids": np.array([1], dtype=np.int32)}),
        ("int64", {"ids": np.array([[1]])}),
        ("int64", {"ids": np.array([2, 1])}),
        ("int64", {"ids": np.array([1, 1])}),
        ("float64", {"ids": np.array([1.0, np.nan])}),
        ("str", {"ids": np.array([1])}),
        ("str", {"bytes": np.zeros(2), "offsets": np.array([0, 2])}),
        ("str", packed(b"ab", [])),
        ("str", packed(b"ab", [0, 1])),
        ("str", packed(b"ab", [1, 2])),
        ("str", packed(b"ab", [0, 3, 2])),
        ("str", packed(b"ab", [0, -1, 2])),
        ("str", packed(b"ba", [0, 1, 2])),
        ("str", packed(b"aa", [0, 1, 2])),
        ("str", packed(b"\xff", [0, 1])),
        ("str", packed("é".encode(), [0, 1, 2])),
        ("bytes", packed(b"aa", [0, 1, 2])),
        ("uuid", packed(b"not one", [0, 7])),
        ("uuid", packed(str(uuid.UUID(int=2**127)).replace("-", "").encode(), [0, 32])),
    ],
)
def test_saved_arrays_that_no_vocabulary_gave_are_an_error(kind, arrays):
    with pytest.raises(ValueError, match=r"saved|no kind|utf-8|hexadecimal"):
        Vocabulary.from_arrays(kind, arrays)
