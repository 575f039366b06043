import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixedals import MixedALS, PopularitySizing, PowerLawSizing, SizeSteps, UniformSizing
from mixedals.sizing import Sizing

counts_arrays = arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 1000))
dims_lists = st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True).map(sorted)


@given(counts_arrays, dims_lists, st.floats(0.01, 10))
def test_popularity_is_the_papers_rule(counts, dims, gamma):
    sizes = PopularitySizing(gamma).fit(counts, dims)(counts)
    rated = counts[counts > 0]
    unit = gamma * np.median(rated) if len(rated) else 1
    for count, size in zip(counts, sizes, strict=True):
        # The nearest allowed dimension, the smaller one halfway; to rounding of the quotient.
        distance = {d: abs(count / unit - d) for d in dims}
        assert distance[size] <= min(distance.values()) + 1e-9 * (1 + count / unit)


def test_halfway_the_smaller_dimension_is_taken():
    counts = np.array([3, 1, 5, 1])  # median 2, gamma 0.5: count / 1
    assert PopularitySizing(0.5).fit(counts, (2, 4))(counts).tolist() == [2, 2, 4, 2]


def test_rows_without_ratings_are_not_in_the_median():
    counts = np.array([0, 0, 0, 10, 20, 30])
    assert PopularitySizing(1).fit(counts, (1, 2)).limits == (30.0,)


@given(counts_arrays, dims_lists)
def test_uniform_is_the_largest(counts, dims):
    assert (UniformSizing().fit(counts, dims)(counts) == dims[-1]).all()


@given(counts_arrays, dims_lists, st.floats(0, 1), st.integers(1, 10))
def test_power_law_grows_with_popularity_among_allowed_dims(counts, dims, temperature, partitions):
    steps = PowerLawSizing(temperature, partitions).fit(counts, dims)
    sizes = steps(counts)
    assert set(sizes.tolist()) <= set(dims)
    order = np.argsort(counts)
    if len(steps.limits):
        assert (np.diff(sizes[order]) >= 0).all()


def test_power_law_by_hand():
    # Popularity 100 in all: 50 | 10 x 5, so two partitions of 1 and 5 rows.
    counts = np.array([50, 10, 10, 10, 10, 10])
    sizes = PowerLawSizing(temperature=1, partitions=2).fit(counts, (1, 2, 3, 4, 5))(counts)
    assert sizes.tolist() == [5, 1, 1, 1, 1, 1]
    flat = PowerLawSizing(temperature=0, partitions=2).fit(counts, (1, 2, 3, 4, 5))(counts)
    assert flat.tolist() == [5] * 6


@pytest.mark.parametrize(
    ("sizing", "message"),
    [
        (PopularitySizing(0), "gamma"),
        (PowerLawSizing(temperature=2), "temperature"),
        (PowerLawSizing(partitions=0), "partitions"),
    ],
)
def test_bad_parameters_are_named(sizing, message):
    with pytest.raises(ValueError, match=message):
        sizing.fit(np.array([1, 2]), (1, 2))


@pytest.mark.parametrize("sizes", [[2.9] * 300, [2.0] * 300])
def test_sizes_must_be_whole(stars, sizes):
    with pytest.raises(TypeError, match="sizes must be integers"):
        MixedALS(sizing={"users": sizes, "items": UniformSizing()}).fit(stars)


def test_sizes_do_not_wrap_round(stars):
    with pytest.raises(ValueError, match="dims doesn't list"):
        MixedALS(sizing={"users": [2**32 + 2] * 300, "items": UniformSizing()}).fit(stars)


def test_steps_are_checked():
    with pytest.raises(ValueError, match="one dimension more"):
        SizeSteps((1.0,), (2,))
    with pytest.raises(ValueError, match="rise"):
        SizeSteps((2.0, 1.0), (1, 2, 3))


class ByParity:
    """A sizing as a user may write it."""

    def fit(self, counts, dims):
        return SizeSteps((float(counts.mean()),), (dims[0], dims[-1]))


def test_a_sizing_of_ones_own(stars):
    assert isinstance(ByParity(), Sizing)
    model = MixedALS(sizing=ByParity(), iterations=1).fit(stars)
    counts = np.diff(stars.by_user.indptr)
    np.testing.assert_array_equal(model.user_dims_, np.where(counts > counts.mean(), 6, 2))


def test_sizes_row_by_row(stars):
    by_id = {id_: 2 + 2 * (id_ % 3) for id_ in stars.users.tolist()}
    model = MixedALS(sizing={"users": by_id, "items": UniformSizing()}, iterations=1).fit(stars)
    np.testing.assert_array_equal(model.user_dims_, 2 + 2 * (stars.users % 3))
    as_array = MixedALS(
        sizing={"users": 2 + 2 * (stars.users % 3), "items": UniformSizing()}, iterations=1
    ).fit(stars)
    np.testing.assert_array_equal(as_array.user_vectors_, model.user_vectors_)


class Sizes:
    """A sizing that gives sizes instead of steps."""

    def fit(self, counts, dims):
        return np.full(len(counts), dims[0])


def test_a_sizing_must_give_steps(stars):
    with pytest.raises(TypeError, match=r"Sizes\.fit must return SizeSteps, not a ndarray"):
        MixedALS(sizing=Sizes()).fit(stars)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, 4], r"need an array of 300 sizes"),
        (np.full(300, 5), r"sizes \[5\] that dims"),
        ({1: 2}, r"299 users have no size"),
    ],
)
def test_wrong_sizes_say_what_is_wrong(stars, sizes, message):
    with pytest.raises(ValueError, match=message):
        MixedALS(sizing={"users": sizes, "items": UniformSizing()}).fit(stars)
