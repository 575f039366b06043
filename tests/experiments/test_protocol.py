"""The protocol against a twin in plain Python, rating by rating."""

from collections import Counter

import numpy as np
import pytest

from mixedals import Interactions
from mixedals.experiments import Protocol
from mixedals.experiments.protocol import N_FOLDS


@pytest.fixture(scope="module")
def rows():
    """Ratings of few users and items on few days, so that many are equally old."""
    rng = np.random.default_rng(3)
    users = rng.integers(60, size=900) ** 2 // 60
    items = rng.integers(150, size=900) ** 2 // 150
    kept = sorted(set(zip(users.tolist(), items.tolist(), strict=True)))
    rng.shuffle(kept)
    return [(f"u{u:02}", i, float(rng.integers(1, 6)), int(rng.integers(8))) for u, i in kept]


def twin(rows, low=2, high=4):
    binary = [(u, i, 1.0 if r >= high else 0.0, t) for u, i, r, t in rows if r <= low or r >= high]
    by_age = sorted(binary, key=lambda row: (row[3], row[0], row[1]))
    first, second = round(0.8 * len(binary)), round(0.9 * len(binary))
    train, valid, test = by_age[:first], by_age[first:second], by_age[second:]
    of_user = Counter(u for u, *_ in train)
    of_item = Counter(i for _, i, *_ in train)
    train = [row for row in train if of_user[row[0]] >= 5 and of_item[row[1]] >= 5]
    users, items = {row[0] for row in train}, {row[1] for row in train}
    known = [[row for row in part if row[0] in users and row[1] in items] for part in (valid, test)]
    return [set(train), *map(set, known)]


def as_set(data):
    return set(data.to_frame().iter_rows())


def protocol_of(rows, **options):
    return Protocol(Interactions.from_arrays(*zip(*rows, strict=True)), **options)


def test_parts_are_the_twins(rows):
    parts = protocol_of(rows).parts
    expected = twin(rows)
    assert [as_set(parts.train), as_set(parts.validation), as_set(parts.test)] == expected
    fewer = Counter(u for u, *_ in expected[0])
    assert min(fewer.values()) < 5, "a user who has fewer than 5 once items went is still there"


def test_the_order_of_the_ratings_makes_no_difference(rows):
    parts, turned = protocol_of(rows).parts, protocol_of(rows[::-1]).parts
    assert as_set(parts.validation) == as_set(turned.validation)


def test_other_bounds(rows):
    parts = protocol_of(rows, bounds=(3, 5)).parts
    assert as_set(parts.test) == twin(rows, 3, 5)[2]


def test_folds_are_of_training_and_validation_and_hold_every_rating_out_once(rows):
    protocol = protocol_of(rows)
    together = as_set(protocol.parts.train) | as_set(protocol.parts.validation)
    held_out = Counter()
    for parts in protocol.folds():
        train, validation, test = map(as_set, (parts.train, parts.validation, parts.test))
        assert not train & validation
        assert not (train | validation) & test
        assert len(validation) == pytest.approx(len(train) / 9, rel=0.1)
        known = {row[0] for row in train}, {row[1] for row in train}
        assert all(row[0] in known[0] and row[1] in known[1] for row in validation | test)
        held_out.update(test)
    assert set(held_out.values()) == {1}
    # But for those whose user or item the fold's training doesn't have.
    assert len(held_out) > 0.9 * len(together)
    assert set(held_out) <= together


def test_folds_are_the_same_each_time(rows):
    first, second = ([as_set(p.test) for p in protocol_of(rows).folds()] for _ in range(2))
    assert first == second
    assert len(first) == N_FOLDS


@pytest.mark.parametrize(("bounds", "left"), [((0, 1), "all 1"), ((5, 6), "all 0")])
def test_bounds_that_do_not_fit_are_named(rows, bounds, left):
    with pytest.raises(ValueError, match=f"train: .* {left} are left by the protocol"):
        _ = protocol_of(rows, bounds=bounds).parts


def test_too_few_ratings_are_named(rows):
    with pytest.raises(ValueError, match="train: 0 ratings are left"):
        _ = protocol_of(rows[:20]).parts
