"""Sizes under a budget: the choice, the axes it is made on, and what the estimator makes of it."""

from dataclasses import replace
from itertools import pairwise, product
from unittest import mock

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

from mixedals import BudgetSizing, Interactions, MixedALS, estimator, load
from mixedals._kernels import Csr
from mixedals.budget import Choice, choose_sizes
from mixedals.export import read_compact, write_compact
from mixedals.leaveoneout import leave_one_out, on_principal_axes
from mixedals.pilot import pilot_of
from mixedals.plots import plot_model, plot_sizes
from mixedals.tiers import Factorisation, Side, Tier

Curves = tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]


@st.composite
def curves(draw: st.DrawFn) -> Curves:
    sizes = tuple(sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=4))))
    error = st.integers(0, 12) | st.just(np.inf)
    row = st.lists(error, min_size=len(sizes), max_size=len(sizes))
    rows = st.lists(row, min_size=1, max_size=6)
    users, items = (np.array(draw(rows), float).reshape(-1, len(sizes)) for _ in range(2))
    return users, items, sizes


def spent(choice: Choice, sizes: tuple[int, ...], projections: tuple[int, ...]) -> int:
    of_sizes = dict(zip(sizes, projections, strict=True))
    return sum(int(side.sum()) + sum(of_sizes[p] for p in set(side.tolist()))
               for side in (choice.users, choice.items))  # fmt: skip


@given(curves(), st.integers(0, 120), st.integers(0, 3))
def test_the_budget_is_kept_and_met_to_within_a_step(curves, budget, per_dimension):
    users, items, sizes = curves
    projections = tuple(per_dimension * p for p in sizes)
    least = Choice(*(np.full(len(side), sizes[0]) for side in (users, items)), 0.0)
    if spent(least, sizes, projections) > budget:
        with pytest.raises(ValueError, match="smallest candidate"):
            choose_sizes(users, items, sizes, budget, projections)
        return
    choice = choose_sizes(users, items, sizes, budget, projections)
    assert spent(choice, sizes, projections) <= budget
    if choice.price > 0:  # something was left to be saved
        slack = sizes[-1] - sizes[0] + max(projections)
        assert spent(choice, sizes, projections) > budget - slack - 1


@given(curves(), st.integers(0, 120))
def test_every_row_has_the_least_error_and_price(curves, budget):
    users, items, sizes = curves
    if (len(users) + len(items)) * sizes[0] > budget:
        return
    choice = choose_sizes(users, items, sizes, budget, [0] * len(sizes))
    for errors, chosen in ((users, choice.users), (items, choice.items)):
        for row, p in zip(errors, chosen, strict=True):
            cost = row + choice.price * np.array(sizes)
            at = sizes.index(p)
            # Of equally cheap sizes any may be taken: the budget may end between them.
            assert cost[at] <= cost.min() + 1e-9 or (at == 0 and np.isinf(row[0]))


@given(curves(), st.integers(0, 100), st.integers(0, 20))
def test_a_larger_budget_takes_nothing_away(curves, budget, more):
    users, items, sizes = curves
    if (len(users) + len(items)) * sizes[0] > budget:
        return
    small, large = (
        choose_sizes(users, items, sizes, b, [0] * len(sizes)) for b in (budget, budget + more)
    )
    assert (large.users >= small.users).all()
    assert (large.items >= small.items).all()
    assert large.price <= small.price


@given(curves(), st.integers(0, 120), st.randoms(use_true_random=False))
def test_the_order_of_rows_matters_only_among_equals(curves, budget, random):
    users, items, sizes = curves
    users = users + np.arange(len(users))[:, None] * 1e-3 * np.arange(len(sizes))  # none are equal
    items = items + np.arange(1, len(items) + 1)[:, None] * 1.7e-5 * np.arange(len(sizes))
    if (len(users) + len(items)) * sizes[0] > budget:
        return
    order = np.array(random.sample(range(len(users)), len(users)), int)
    one = choose_sizes(users, items, sizes, budget, [0] * len(sizes))
    other = choose_sizes(users[order], items, sizes, budget, [0] * len(sizes))
    assert other.price == one.price


def side_of(x: NDArray[np.float64], name: str, biases: bool = False) -> Side:
    n, d = x.shape
    tier = Tier(np.arange(n, dtype=np.int32), x.astype(np.float32))
    bias = np.linspace(-1, 1, n).astype(np.float32) if biases else None
    return Side(name, n, d, (tier,), bias)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 12), st.integers(0, 100))
def test_the_first_axes_are_the_best_model_of_every_dimension(d, n, m, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) * rng.uniform(0.1, 3, d)
    weights = [rng.uniform(0.5, 3, k).astype(np.float32) for k in (n, m)]
    model = Factorisation(side_of(x, "users"), side_of(y, "items"))
    turned = on_principal_axes(model, *weights)
    left, right = turned.users.common, turned.items.common
    np.testing.assert_allclose(left @ right.T, x @ y.T, atol=1e-4)
    roots = np.sqrt(weights[0])[:, None], np.sqrt(weights[1])
    best = np.linalg.svd(roots[0] * (x @ y.T) * roots[1])[1]
    for p in range(d + 1):
        rest = roots[0] * (x @ y.T - left[:, :p] @ right[:, :p].T) * roots[1]
        assert np.linalg.norm(rest) == pytest.approx(np.linalg.norm(best[p:]), abs=1e-4)
    lengths = (weights[0] @ left**2, weights[1] @ right**2)
    np.testing.assert_allclose(*lengths, atol=1e-3)


def test_axes_that_a_model_lacks_are_zero():
    x = np.zeros((5, 3))
    x[:, 1] = np.arange(5)
    one = np.ones(5, np.float32)
    turned = on_principal_axes(Factorisation(side_of(x, "users"), side_of(x, "items")), one, one)
    assert np.abs(turned.users.common[:, 1:]).max() < 1e-5
    np.testing.assert_allclose(
        turned.users.common @ turned.items.common.T, x @ x.T, rtol=1e-5, atol=1e-5
    )


def test_without_penalties_predictions_stay(rng):
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(10, 3))
    model = Factorisation(side_of(x, "users"), side_of(y, "items"))
    turned = on_principal_axes(model, np.zeros(20, np.float32), np.ones(10, np.float32))
    np.testing.assert_allclose(
        turned.users.common @ turned.items.common.T, x @ y.T, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_errors_are_those_of_leaving_out_and_fitting_anew(stars, biases, learned):
    rng = np.random.default_rng(0)
    ratings = stars.by_user
    ridge = rng.uniform(1, 5, ratings.n_rows).astype(np.float32)
    items = side_of(rng.normal(size=(stars.n_items, 5)), "items", biases)
    sizes = (0, 1, 3, 5) if biases else (1, 3, 5)
    projections = {3: rng.normal(size=(5, 3)).astype(np.float32)} if learned else {}
    rows = np.arange(0, stars.n_users, 29)
    errors = leave_one_out(ratings, items, ridge, 3.0, sizes, projections)[rows]
    known = 3.0 + (items.biases if items.biases is not None else np.zeros(stars.n_items))
    twin = reference.Ratings(ratings.indptr, ratings.indices, ratings.values, ratings.n_columns)
    for j, p in enumerate(sizes):
        z = items.common @ projections[p] if p in projections else items.common[:, :p]
        z = np.column_stack([np.ones(len(z)), z]) if biases else z
        expected = reference.leave_one_out(twin, rows, z, known, ridge[rows], [z.shape[1]])
        np.testing.assert_allclose(errors[:, j], expected[:, 0], rtol=1e-3)


SMALL = (1, 2, 4)
VARIANTS = {
    "padded": {"projection": "padded"},
    "learned": {},
    "biases": {"projection": "padded", "biases": True},
    "both": {"biases": True},
}


def fit(data: Interactions, per_row: float = 1.8, **parameters: object) -> MixedALS:
    candidates = SMALL
    if parameters.get("biases"):
        per_row, candidates = per_row + 0.8, (0, *SMALL)
    sizing = BudgetSizing(parameters_per_row=per_row, candidates=candidates, pilot_iterations=4)
    return MixedALS(sizing=sizing, iterations=4, progress=False, **parameters).fit(data)


@pytest.fixture(scope="module", params=VARIANTS)
def model(request, stars) -> MixedALS:
    return fit(stars, **VARIANTS[request.param])


def test_models_meet_the_budget(model, stars):
    budget = model.sizing.budget(stars.n_users + stars.n_items)
    assert budget - max(SMALL) < model.n_parameters_ <= budget
    assert set(model.user_dims_.tolist()) <= {0, *SMALL}
    for vectors, dims in (
        (model.user_vectors_, model.user_dims_),
        (model.item_vectors_, model.item_dims_),
    ):
        assert not vectors[dims == 0].any()


def test_same_bits_for_any_number_of_threads_and_order(model, stars):
    frame = stars.to_frame().sample(fraction=1, shuffle=True, seed=3)
    data = Interactions.from_arrays(frame["user"], frame["item"], frame["rating"])
    names = ("projection", "biases")
    parameters = {name: model.get_params()[name] for name in names}
    again = fit(data, n_threads=1, **parameters)
    np.testing.assert_array_equal(again.user_dims_, model.user_dims_)
    np.testing.assert_array_equal(again.user_vectors_, model.user_vectors_)
    np.testing.assert_array_equal(again.item_vectors_, model.item_vectors_)


def test_a_model_comes_back_whole_and_fits_again_to_the_same(model, stars, tmp_path):
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.sizing == model.sizing
    assert again._fitted.user_rules == model._fitted.user_rules
    assert again.recommend(k=3).equals(model.recommend(k=3))
    np.testing.assert_array_equal(again.fit(stars).user_vectors_, model.user_vectors_)


def test_new_rows_get_the_size_of_least_error_and_price(model, stars):
    frame = stars.to_frame()
    frame = frame.filter(frame["user"] % 7 == 0)
    new = Interactions.from_arrays(frame["user"] + 1000, frame["item"], frame["rating"])
    folded = model.fold_in_users(new)
    fitted = model._fitted
    items, rules = fitted.factors.items, fitted.user_rules
    matrices = {t.p: t.projection for t in fitted.factors.users.tiers if t.projection is not None}
    sizes = [tier.p for tier in fitted.factors.users.tiers]
    position = fitted.items.match(new.item_vocabulary)
    by_user = new.by_user
    ratings = Csr(by_user.indptr, position[by_user.indices], by_user.values, len(fitted.items))
    ridge = rules.ridge(np.diff(ratings.indptr))
    errors = leave_one_out(ratings, items, ridge, fitted.factors.mean, sizes, matrices)
    expected = np.array(sizes)[(errors + rules.price * np.array(sizes)).argmin(axis=1)]
    np.testing.assert_array_equal(folded.user_dims_[len(model.user_ids_) :], expected)
    assert len(set(expected.tolist())) > 1


def test_a_training_row_keeps_its_size_and_vector(model, stars):
    frame = stars.to_frame()
    for fold, key in ((model.fold_in_users, "user"), (model.fold_in_items, "item")):
        some = frame.filter(frame[key].is_in([3, 50]))
        folded = fold(Interactions.from_arrays(some["user"], some["item"], some["rating"]))
        np.testing.assert_array_equal(folded.user_dims_, model.user_dims_)
        np.testing.assert_array_equal(folded.item_dims_, model.item_dims_)
        if key == "user":
            np.testing.assert_array_equal(folded.user_vectors_, model.user_vectors_)


def test_rows_of_size_0_are_predicted_by_mean_and_biases(stars, tmp_path):
    model = fit(stars, per_row=0.7, projection="padded", biases=True)
    users = model.user_ids_[model.user_dims_ == 0]
    assert 0 < len(users) < stars.n_users
    bias = model.user_biases_[model.user_dims_ == 0]
    predicted = model.predict_grid(users, model.item_ids_)
    mean = model._fitted.factors.mean
    np.testing.assert_allclose(
        predicted, mean + bias[:, None] + model.item_biases_[None, :], rtol=1e-5
    )
    assert len(model.similar_users(users[:2], k=3)) == 6
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").recommend(users, k=2).equals(model.recommend(users, k=2))
    write_compact(model, tmp_path / "compact")
    compact = read_compact(tmp_path / "compact")
    np.testing.assert_array_equal(compact.user_vectors, model.user_vectors_)
    folded = model.fold_in_users(
        Interactions.from_arrays([9999], [stars.items[0]], [3.0]), dims={9999: 0}
    )
    assert folded.user_dims_[-1] == 0


def planted(rng: np.random.Generator, sizes: NDArray[np.int64], m: int) -> Interactions:
    """Ratings of users that use the first axes alone, as many as their size, of items with all.

    Users of a size come with every combination of signs, and items' axes are orthogonal: so these
    axes are the principal ones.
    """
    d = int(sizes.max())
    signs = np.array(list(product((-1, 1), repeat=d)))
    x = np.zeros((len(sizes), d))
    for p in np.unique(sizes):
        at = np.flatnonzero(sizes == p)
        x[at, :p] = np.resize(signs, (len(at), d))[:, :p]
    y = np.linalg.qr(rng.normal(size=(m, d)))[0] * np.sqrt(m)
    users, items = np.nonzero(rng.random((len(sizes), m)) < 0.5)
    noise = rng.normal(size=len(users)) * 0.3
    return Interactions.from_arrays(users, items, (x @ y.T)[users, items] + noise)


def test_planted_sizes_are_found(rng):
    sizes = rng.permutation(np.repeat([1, 2, 4], [160, 96, 64]))
    data = planted(rng, sizes, 100)
    budget = int(sizes.sum()) + 4 * 100
    sizing = BudgetSizing(parameters=budget, candidates=(1, 2, 4, 6))
    model = MixedALS(sizing=sizing, projection="padded", reg=0.1, metric="rmse").fit(data)
    assert (model.item_dims_ == 4).mean() > 0.95
    assert (model.user_dims_ == sizes).mean() > 0.95


def test_a_larger_budget_never_lowers_the_training_fit(rng):
    data = planted(rng, np.repeat([1, 2, 4], 64), 80)
    errors, sizes = [], []
    for per_row in (1.0, 1.5, 2.0, 2.5, 3.0):
        sizing = BudgetSizing(parameters_per_row=per_row, candidates=(1, 2, 3, 4), rounds=1)
        model = MixedALS(sizing=sizing, projection="padded", reg=0.1, iterations=15).fit(data)
        errors.append(model.history_["objective"][-1])
        sizes.append(model.user_dims_)
    assert errors == sorted(errors, reverse=True)
    assert all((more >= fewer).all() for fewer, more in pairwise(sizes))


def test_a_pilot_with_biases_serves_as_its_own(stars):
    sizing = BudgetSizing(parameters_per_row=2.5, candidates=(0, *SMALL), pilot_iterations=4)
    model = MixedALS(sizing=sizing, iterations=2, projection="padded", biases=True, reg=2.0)
    alone = clone(model).fit(stars)
    given = clone(model).fit(stars, start=pilot_of(model).fit(stars))
    assert given.mean_ == alone.mean_
    np.testing.assert_array_equal(given.user_vectors_, alone.user_vectors_)


@pytest.mark.parametrize("biases", [True, False])
def test_a_pilot_has_biases_where_the_model_has_some(stars, monkeypatch, biases):
    sizing = BudgetSizing(parameters_per_row=2.5, candidates=SMALL, pilot_iterations=2)
    model = MixedALS(sizing=sizing, iterations=1, projection="padded", biases=biases, reg=2.0)
    pilots = {with_: pilot_of(clone(model).set_params(biases=with_)).fit(stars)
              for with_ in (True, False)}  # fmt: skip
    trained = mock.Mock(side_effect=estimator.train_pilot)
    monkeypatch.setattr(estimator, "train_pilot", trained)
    model.fit(stars, start=pilots[biases])
    assert not trained.called
    model.fit(stars, start=pilots[not biases])
    assert trained.called


def test_one_pilot_serves_many_budgets(stars):
    sizing = BudgetSizing(parameters_per_row=1.8, candidates=SMALL, pilot_iterations=4)
    settings = {"reg": 2.0, "projection": "padded"}
    pilot = MixedALS(dims=4, iterations=4, reg=2.0).fit(stars)
    alone = MixedALS(sizing=sizing, iterations=3, **settings).fit(stars)
    never = replace(sizing, pilot_iterations=10**9)
    given = MixedALS(sizing=never, iterations=3, **settings).fit(stars, start=pilot)
    np.testing.assert_array_equal(given.user_vectors_, alone.user_vectors_)
    # One of another dimension, or without some rows, is no pilot, but a start for one.
    for other in (
        MixedALS(dims=3, iterations=1).fit(stars),
        MixedALS(dims=4, iterations=1).fit(stars.at_least(user=20)),
    ):
        model = MixedALS(sizing=sizing, iterations=1, **settings).fit(stars, start=other)
        assert model.n_parameters_ <= alone.n_parameters_ + 1


def test_a_checkpoint_goes_on_to_the_same_model(stars, tmp_path):
    sizing = BudgetSizing(parameters_per_row=1.8, candidates=SMALL, pilot_iterations=3)
    whole = MixedALS(sizing=sizing, iterations=6).fit(stars)
    MixedALS(sizing=sizing, iterations=4, eval_every=2).fit(stars, checkpoint=tmp_path / "c")
    again = MixedALS(sizing=sizing, iterations=6, eval_every=2)
    again.fit(stars, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.user_vectors_, whole.user_vectors_)


@pytest.mark.parametrize(
    "given", [{"parameters": 1240}, {"parameters_per_row": 2.953}, {"bytes": 4960}]
)
def test_a_budget_in_any_unit(stars, given):
    assert BudgetSizing(**given).budget(420) == 1240


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "one of parameters, parameters_per_row and bytes, it has none"),
        ({"parameters": 1, "bytes": 4}, "it has parameters, bytes"),
        ({"parameters": -3}, "parameters=-3: it must be a number above 0"),
        ({"parameters_per_row": "2"}, "parameters_per_row='2'"),
        ({"parameters": float("inf")}, "parameters=inf"),
        ({"parameters": 9, "candidates": (1, 1)}, "distinct integers"),
        ({"parameters": 9, "candidates": (0,)}, "one of them above 0"),
        ({"parameters": 9, "candidates": ()}, "one of them above 0"),
        ({"parameters": 9, "candidates": (1.5,)}, "distinct integers"),
        ({"parameters": 9, "candidates": "4"}, "distinct integers"),
        ({"parameters": 9, "pilot_iterations": 0}, "pilot_iterations=0"),
        ({"parameters": 9, "rounds": 1.5}, "rounds=1.5"),
    ],
    ids=repr,
)
def test_bad_budgets_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        BudgetSizing(**parameters)


def test_candidates_are_put_in_order():
    assert BudgetSizing(parameters=9, candidates=[4, 1, 2]).candidates == (1, 2, 4)
    assert BudgetSizing(parameters=9).sizes(biases=True)[:3] == (0, 1, 2)
    assert BudgetSizing(parameters=9).sizes(biases=False)[:2] == (1, 2)


def test_what_a_budget_cannot_do_is_said(stars):
    with pytest.raises(ValueError, match=r"leaves 100 parameters .* 1, for all 420 .* take 420"):
        MixedALS(sizing=BudgetSizing(parameters=100), projection="padded").fit(stars)
    with pytest.raises(ValueError, match="leaves 0 parameters"):
        MixedALS(sizing=BudgetSizing(parameters=400), biases=True).fit(stars)
    with pytest.raises(ValueError, match="learn biases"):
        MixedALS(sizing=BudgetSizing(parameters=900, candidates=(0, 2))).fit(stars)
    budget = BudgetSizing(parameters=900)
    with pytest.raises(ValueError, match="a budget is for both sides"):
        MixedALS(sizing={"users": budget, "items": budget}).fit(stars)


def test_more_budget_than_helps_is_not_spent(stars):
    model = MixedALS(sizing=BudgetSizing(parameters=10**9), projection="padded", reg=3.0).fit(stars)
    assert model.n_parameters_ < 12 * 420
    assert model._fitted.user_rules.price == 0


def test_the_shares_of_the_sizes_are_drawn(model):
    for figure in (plot_sizes(model), plot_model(model)):
        for axes, dims in zip(figure.axes[-2:], (model.user_dims_, model.item_dims_), strict=True):
            tops = [bar.get_y() + bar.get_height() for bar in axes.patches]
            assert max(tops) == pytest.approx(1)
            drawn = {bar for bar in axes.patches if bar.get_height() > 0}
            assert len({bar.get_facecolor() for bar in drawn}) == len(np.unique(dims))
