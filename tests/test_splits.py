import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedals.interactions import Interactions
from mixedals.splits import k_folds, split_at_random, split_by_time

few_examples = settings(max_examples=40, deadline=None)


def table(n=200, seed=0, n_times=10):
    rng = np.random.default_rng(seed)
    pairs = rng.choice(30 * 20, n, replace=False)
    times = rng.integers(0, n_times, n)
    return pairs // 20, pairs % 20, rng.integers(1, 6, n).astype(np.float32), times


def make(users, items, ratings, times):
    return Interactions.from_arrays(users, items, ratings, timestamps=times)


def rows(data):
    return data.to_frame().rows()


def assert_parted(data, parts):
    assert sorted(row for part in parts for row in rows(part)) == rows(data)


@few_examples
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_parts_by_time_are_slices_of_the_ratings_by_time_and_pair(times, shares):
    n = len(times)
    data = make(np.arange(n) // 3, np.arange(n) % 3, np.ones(n), np.array(times))
    fractions = np.array(shares) / sum(shares)
    parts = split_by_time(data, tuple(fractions))
    by_time = sorted(rows(data), key=lambda row: (row[3], row[0], row[1]))
    ends = [0, *np.rint(np.cumsum(fractions)[:-1] * n).astype(int), n]
    assert [rows(part) for part in parts] == [
        sorted(by_time[a:b]) for a, b in itertools.pairwise(ends)
    ]


@pytest.mark.parametrize("split", [split_by_time, split_at_random])
def test_parts_do_not_depend_on_the_order_of_the_input(split):
    columns = table()
    shuffled = np.random.default_rng(1).permutation(len(columns[0]))
    data, other = make(*columns), make(*(column[shuffled] for column in columns))
    parts = split(data)
    assert [len(part) for part in parts] == [160, 20, 20]
    assert_parted(data, parts)
    assert [rows(part) for part in parts] == [rows(part) for part in split(other)]


def test_random_parts_depend_on_the_random_state():
    data = make(*table())
    one, same, other = (split_at_random(data, (0.5, 0.5), state) for state in (3, 3, 4))
    assert rows(one[0]) == rows(same[0]) != rows(other[0])
    generator = np.random.default_rng(3)
    assert rows(split_at_random(data, (0.5, 0.5), generator)[0]) == rows(one[0])


def test_every_rating_is_held_out_once():
    data = make(*table(n=23))
    folds = list(k_folds(data, 4))
    assert_parted(data, [held_out for _, held_out in folds])
    assert {len(held_out) for _, held_out in folds} <= {5, 6}
    for train, held_out in folds:
        assert_parted(data, [train, held_out])


def test_there_may_be_as_many_folds_as_ratings():
    n = 2**15 + 9
    data = Interactions.from_arrays(np.arange(n), np.zeros(n, dtype=int), np.ones(n))
    train, held_out = next(iter(k_folds(data, n)))
    assert (len(train), len(held_out)) == (n - 1, 1)


def test_parts_keep_only_the_ids_they_have():
    train, _, test = split_by_time(make(*table(n=20)))
    for part in (train, test):
        assert set(part.users) == {row[0] for row in rows(part)}
        assert set(part.items) == {row[1] for row in rows(part)}


def test_splitting_by_time_needs_timestamps():
    with pytest.raises(ValueError, match=r"timestamp.*split_at_random"):
        split_by_time(Interactions.from_arrays([1], [1], [1.0]))


@pytest.mark.parametrize("fractions", [(0.5, 0.4), (1.2, -0.2), (1.0, 0.0), (), (np.nan, 1.0)])
def test_fractions_must_be_positive_and_sum_to_one(fractions):
    with pytest.raises(ValueError, match="positive and have the sum 1"):
        split_at_random(make(*table()), fractions)


@pytest.mark.parametrize("k", [0, 1, 201])
def test_folds_must_be_possible(k):
    with pytest.raises(ValueError, match="k must be from 2"):
        k_folds(make(*table()), k)


def test_folds_are_counted_by_integers():
    with pytest.raises(TypeError, match=r"k must be an integer, not 2\.5"):
        k_folds(make(*table()), 2.5)
