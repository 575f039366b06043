"""Hashes and the numbers made of them: the same everywhere, to the bit."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import at_every_level, generated, refused
from numpy import float32, int64, uint8, uint64
from numpy.typing import NDArray

pytestmark = at_every_level

words = st.integers(0, 2**64 - 1)


def test_mix_is_splitmix64(kernels: ModuleType) -> None:
    """The first outputs of SplitMix64 from seed 0, whose state steps by the golden ratio."""
    state = np.arange(3, dtype=uint64) * uint64(0x9E3779B97F4A7C15)
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert reference.mix(state).tolist() == expected


@generated
@given(
    seed=words,
    stream=words,
    keys=st.lists(words, max_size=20),
    p=st.integers(0, 20),
    low=st.floats(-10, 10, width=32),
    width=st.floats(0, 10, width=32),
)
def test_uniform(
    kernels: ModuleType, seed: int, stream: int, keys: list[int], p: int, low: float, width: float
) -> None:
    high = float(float32(low + width))
    rows = np.array(keys, uint64)
    numbers = kernels.uniform(seed, stream, rows, p, low, high, 1)
    expected = reference.uniform(seed, stream, rows, p, low, high)
    np.testing.assert_array_equal(numbers, expected.astype(float32), strict=True)
    assert (numbers >= low).all()
    assert (numbers <= high).all()


def test_a_number_depends_on_its_own_key_and_column_alone(kernels: ModuleType) -> None:
    keys = np.arange(10_000, dtype=uint64)
    numbers = kernels.uniform(3, 4, keys, 5, -0.1, 0.1, 1)
    order = np.random.default_rng(0).permutation(len(keys))
    for n_threads in (1, 2, 3):
        again = kernels.uniform(3, 4, keys[order], 2, -0.1, 0.1, n_threads)
        np.testing.assert_array_equal(again, numbers[order, :2])


def test_numbers_are_uniform_and_independent(kernels: ModuleType) -> None:
    keys = np.arange(100_000, dtype=uint64)
    numbers = kernels.uniform(0, 0, keys, 2, 0.0, 1.0, 1).astype(float)
    counts, _ = np.histogram(numbers, bins=100, range=(0, 1))
    expected = numbers.size / 100
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert 50 < chi_square < 165  # 99 degrees of freedom: 6e-6 below, 4e-5 above
    others = [kernels.uniform(*start, keys, 1, 0.0, 1.0, 1)[:, 0] for start in [(0, 1), (1, 0)]]
    correlation = np.corrcoef([*numbers.T, *others])
    assert np.abs(correlation - np.eye(4)).max() < 5 / np.sqrt(len(keys))


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_fnv1a_by_its_authors_vectors(kernels: ModuleType, text: bytes, expected: int) -> None:
    assert reference.fnv1a(text) == expected
    assert hashes(kernels, [text]).tolist() == [expected]


def hashes(kernels: ModuleType, texts: list[bytes]) -> NDArray[uint64]:
    offsets = np.cumsum([0, *map(len, texts)]).astype(int64)
    return kernels.hash_strings(np.frombuffer(b"".join(texts), uint8), offsets)


@generated
@given(texts=st.lists(st.binary(max_size=20), max_size=20))
def test_hash_strings(kernels: ModuleType, texts: list[bytes]) -> None:
    assert hashes(kernels, texts).tolist() == [reference.fnv1a(text) for text in texts]


KEYS = np.arange(3, dtype=uint64)
UNIFORM = {
    "seed": 1, "stream": 2, "keys": KEYS, "p": 2, "low": 0.0, "high": 1.0, "n_threads": 1
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": -1},
        {"seed": 2**64},
        {"stream": 0.5},
        {"keys": np.arange(3)},
        {"keys": KEYS[None]},
        {"keys": np.arange(6, dtype=uint64)[::2]},
        {"p": -1},
        {"n_threads": 0},
    ],
    ids=repr,
)
def test_wrong_arguments_of_uniform_are_refused(
    kernels: ModuleType, changes: dict[str, Any]
) -> None:
    kernels.uniform(**UNIFORM)
    with pytest.raises(refused):
        kernels.uniform(**(UNIFORM | changes))


def test_more_numbers_than_memory(kernels: ModuleType) -> None:
    with pytest.raises(MemoryError):
        kernels.uniform(**(UNIFORM | {"p": 2**62}))


@pytest.mark.parametrize(
    "offsets",
    [[], [0], [0, 2], [1, 3], [0, 2, 1, 3], [0, 4], [0, -1, 3]],
    ids=repr,
)
def test_wrong_offsets_are_refused(kernels: ModuleType, offsets: list[int]) -> None:
    with pytest.raises(refused):
        kernels.hash_strings(np.zeros(3, uint8), np.array(offsets, int64))
