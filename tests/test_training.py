"""Properties of training that follow from the mathematics."""

import numpy as np
import pytest

from mixedals import Interactions, MixedALS, PopularitySizing, UniformSizing
from mixedals.preparation import initial_state, make_problem, mean_rating, prepare_side
from mixedals.tiers import Factorisation, Side, Tier
from mixedals.trainer import Problem, iterate
from mixedals.updates import ProjectionProblem, SolveError, solve_projections, solve_rows


def prepared(estimator: MixedALS, data: Interactions) -> tuple[Problem, Factorisation]:
    """What ``fit`` would start from."""
    estimator.seed_ = 0
    users = prepare_side("users", data.user_vocabulary, data.by_user, estimator)
    items = prepare_side("items", data.item_vocabulary, data.by_item, estimator)
    state = initial_state(users, items, estimator, mean_rating(data.by_user), n_threads=2)
    return make_problem(users, items, estimator), state.model


def predictions(model: Factorisation, problem: Problem) -> np.ndarray:
    """Of every training pair, in double precision, from the factors themselves."""
    users = np.repeat(np.arange(problem.by_user.n_rows), np.diff(problem.by_user.indptr))
    items = problem.by_user.indices
    x, y = (side.common.astype(np.float64) for side in (model.users, model.items))
    out = (x[users] * y[items]).sum(axis=1) + model.mean
    for side, rows in ((model.users, users), (model.items, items)):
        if side.biases is not None:
            out += side.biases[rows]
    return out


def objective(model: Factorisation, problem: Problem) -> float:
    """Equation als_proj, with weights, biases and a penalty for each row."""
    ratings = problem.by_user
    weights = 1.0 if ratings.weights is None else ratings.weights.astype(np.float64)
    total = np.sum(weights * (predictions(model, problem) - ratings.values) ** 2)
    for side, ridge, beta in (
        (model.users, problem.user_ridge, problem.user_beta),
        (model.items, problem.item_ridge, problem.item_beta),
    ):
        for tier in side.tiers:
            total += (ridge[tier.rows, None] * tier.factors.astype(np.float64) ** 2).sum()
            if tier.projection is not None:
                total += beta * (tier.projection.astype(np.float64) ** 2).sum()
        if side.biases is not None:
            total += (ridge * side.biases.astype(np.float64) ** 2).sum()
    return float(total)


VARIANTS = {
    "plain": {"dims": 6},
    "padded": {"projection": "padded"},
    "projected": {},
    "large": {"dims": (4, 20, 40), "projection_reg": 10.0},
    "large, free projections": {"dims": (20, 40), "projection_reg": 0.0},
    "biases": {"biases": True},
    "mean": {"global_mean": True, "reg_exponent": 0.5},
    "sides": {
        "reg": {"users": 1.0, "items": 5.0},
        "projection_reg": {"users": 30.0, "items": 90.0},
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_update_raises_the_objective(stars, rng, variant, weighted):
    if weighted:
        frame = stars.to_frame()
        stars = Interactions.from_arrays(
            frame["user"], frame["item"], frame["rating"], weights=rng.uniform(0, 2, len(frame))
        )
    problem, model = prepared(MixedALS(**VARIANTS[variant]), stars)
    mean = model.mean
    before = objective(model, problem)
    for _ in range(4):
        for name, update, ratings, penalty in (
            ("items", solve_projections, problem.by_item, problem.item_beta),
            ("users", solve_projections, problem.by_user, problem.user_beta),
            ("items", solve_rows, problem.by_item, problem.item_ridge),
            ("users", solve_rows, problem.by_user, problem.user_ridge),
        ):
            side, other = model.users, model.items
            if name == "items":
                side, other = other, side
            updated = update(side, other, ratings, penalty, mean)
            updated = getattr(updated, "side", updated)
            sides = {"users": model.users, "items": model.items, name: updated}
            model = Factorisation(sides["users"], sides["items"], mean)
            after = objective(model, problem)
            # Single precision moves the minimum by about its rounding of the terms.
            assert after <= before * (1 + 1e-6), (name, update.__name__)
            before = after


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_goes_where_errors_cancel(stars, rng, weighted):
    frame = stars.to_frame()
    weights = rng.uniform(0, 2, len(frame)) if weighted else None
    data = Interactions.from_arrays(frame["user"], frame["item"], frame["rating"], weights=weights)
    problem, model = prepared(MixedALS(biases=True), data)
    for number in (1, 2, 3):
        before, (model, _) = model, iterate(model, problem, number)
        error = problem.by_user.values - predictions(before, problem)
        if number > 1:  # the initial values are no users' solution
            expected = np.average(error, weights=problem.by_user.weights)
            assert model.mean - before.mean == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_reported_objective_is_that_of_the_model(stars, variant):
    problem, model = prepared(MixedALS(**VARIANTS[variant]), stars)
    for number in (1, 2, 3):
        model, reported = iterate(model, problem, number)
        assert reported.total == pytest.approx(objective(model, problem), rel=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_users_gradient_is_zero_at_the_end(stars, variant):
    model = MixedALS(**VARIANTS[variant], iterations=3).fit(stars)
    factors = model._model.factors
    problem, _ = prepared(model, stars)
    error = problem.by_user.values - predictions(factors, problem)
    items = factors.items.common.astype(np.float64)
    for tier in factors.users.tiers:
        projection = np.eye(factors.users.d, tier.p) if tier.projection is None else tier.projection
        z, z_terms = items @ projection, np.abs(items) @ np.abs(projection)
        for row, x in zip(tier.rows, tier.factors, strict=True):
            ratings = slice(*problem.by_user.indptr[row : row + 2])
            seen = z[problem.by_user.indices[ratings]]
            pull = seen.T @ error[ratings]
            # What single precision leaves is in proportion to the terms that cancel.
            terms = z_terms[problem.by_user.indices[ratings]]
            scale = terms.T @ (np.abs(problem.by_user.values[ratings]) + terms @ np.abs(x))
            assert np.abs(pull - problem.user_ridge[row] * x).max() <= 1e-6 * scale.max()


@pytest.mark.parametrize("projection", ["learned", "padded"])
def test_equal_dims_are_plain_als_bit_for_bit(stars, projection):
    plain = MixedALS(dims=6, iterations=4).fit(stars)
    for sizing in (UniformSizing(), PopularitySizing(gamma=1e-9)):
        mixed = MixedALS((2, 6), sizing, projection, iterations=4).fit(stars)
        np.testing.assert_array_equal(mixed.user_vectors_, plain.user_vectors_)
        np.testing.assert_array_equal(mixed.item_vectors_, plain.item_vectors_)


def test_projections_fixed_at_eye_are_zero_padding(stars):
    problem, padded = prepared(MixedALS(projection="padded"), stars)

    def with_eyes(side: Side) -> Side:
        return side.with_tiers(
            Tier(t.rows, t.factors, np.eye(side.d, t.p, dtype=np.float32)) for t in side.tiers
        )

    users, items = with_eyes(padded.users), with_eyes(padded.items)
    pad_users, pad_items = padded.users, padded.items
    for _ in range(3):
        items = solve_rows(items, users, problem.by_item, problem.item_ridge, 0).side
        users = solve_rows(users, items, problem.by_user, problem.user_ridge, 0).side
        pad_items = solve_rows(pad_items, pad_users, problem.by_item, problem.item_ridge, 0).side
        pad_users = solve_rows(pad_users, pad_items, problem.by_user, problem.user_ridge, 0).side
    np.testing.assert_allclose(users.common, pad_users.common, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_number_of_threads_gives_the_same_bits(stars, variant):
    one, *others = (
        MixedALS(**VARIANTS[variant], iterations=3, n_threads=n).fit(stars) for n in (1, 2, 5)
    )
    for other in others:
        np.testing.assert_array_equal(other.user_vectors_, one.user_vectors_)
        np.testing.assert_array_equal(other.item_vectors_, one.item_vectors_)
        assert other.history_.drop("seconds").equals(one.history_.drop("seconds"))


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_ratings_gives_the_same_bits(stars, seed):
    shuffled = Interactions.from_frame(stars.to_frame().sample(fraction=1, shuffle=True, seed=seed))
    for sampling in (None, "paper"):
        estimator = MixedALS(iterations=2, projection_sampling=sampling)
        one, other = estimator.fit(stars).user_vectors_, estimator.fit(shuffled).user_vectors_
        np.testing.assert_array_equal(one, other)


def test_frames_arrays_and_matrices_give_the_same_model(stars):
    from scipy.sparse import coo_array

    frame = stars.to_frame()
    users, items = (frame[name].rank("dense").to_numpy() - 1 for name in ("user", "item"))
    matrix = coo_array((frame["rating"].to_numpy(), (users, items)))
    table = {"user": users, "item": items, "rating": frame["rating"].to_numpy()}
    vectors = [
        MixedALS(iterations=2).fit(data).user_vectors_
        for data in (
            Interactions.from_frame(table),
            Interactions.from_arrays(users, items, table["rating"]),
            Interactions.from_matrix(matrix.tocsr()),
        )
    ]
    vectors.append(
        MixedALS(iterations=2).fit(np.column_stack([users, items]), table["rating"]).user_vectors_
    )
    for other in vectors[1:]:
        np.testing.assert_array_equal(other, vectors[0])


def test_parameters_are_counted_as_the_paper_does(stars):
    model = MixedALS(dims=(2, 4, 6), iterations=1).fit(stars)
    projections = sum(
        6 * p
        for dims in (model.user_dims_, model.item_dims_)
        for p in np.unique(dims).tolist()
        if p < 6
    )
    embeddings = int(model.user_dims_.sum() + model.item_dims_.sum())
    assert model.n_parameters_ == embeddings + projections
    padded = MixedALS(dims=(2, 4, 6), projection="padded", iterations=1).fit(stars)
    assert padded.n_parameters_ == embeddings
    assert MixedALS(dims=5, iterations=1).fit(stars).n_parameters_ == 5 * (
        stars.n_users + stars.n_items
    )


@pytest.mark.parametrize("p", [3, 20])
def test_a_planted_low_rank_matrix_is_recovered(rng, p):
    x, y = rng.standard_normal((200, p)), rng.standard_normal((150, p))
    users, items = np.nonzero(rng.random((200, 150)) < 0.7)
    data = Interactions.from_arrays(users, items, (x @ y.T)[users, items])
    model = MixedALS(dims=p, reg=1e-4, iterations=60).fit(data)
    unseen = np.argwhere(rng.random((200, 150)) < 0.1)
    error = model.predict(unseen) - (x @ y.T)[tuple(unseen.T)]
    assert np.sqrt(np.mean(error**2)) < 0.01 * np.sqrt(p)


def test_conjugate_gradients_give_the_dense_projections(stars, monkeypatch):
    problem, model = prepared(MixedALS(dims=(4, 20, 40), projection_reg=10.0), stars)
    model, _ = iterate(model, problem, 1)

    def projections(limit: int) -> list[np.ndarray]:
        monkeypatch.setattr("mixedals.updates.DENSE_LIMIT", limit)
        side = solve_projections(model.users, model.items, problem.by_user, 10.0, 0)
        return [tier.projection for tier in side.tiers if tier.projection is not None]

    for dense, gradients in zip(projections(10**6), projections(0), strict=True):
        assert np.abs(dense - gradients).max() < 1e-3 * np.abs(dense).max()


def test_the_papers_sample_changes_with_the_iteration_and_the_seed(stars):
    def vectors(**parameters):
        return MixedALS(projection_sampling="paper", **parameters).fit(stars).user_vectors_

    exact = MixedALS(iterations=2).fit(stars).user_vectors_
    assert np.isfinite(vectors(iterations=2)).all()
    assert not np.array_equal(vectors(iterations=2), exact)
    problem, _ = prepared(MixedALS(projection_sampling="paper"), stars)
    keys = {problem.sample(i, side).key for i in (1, 2) for side in ("users", "items")}
    assert len(keys) == 4


class TestUnusualData:
    def test_one_user_one_item(self):
        data = Interactions.from_arrays(["u"], ["i"], [4.0])
        model = MixedALS(dims=2, reg=0.01).fit(data)
        assert model.predict(["u"], ["i"])[0] == pytest.approx(4.0, abs=0.05)

    def test_rows_without_ratings(self):
        from scipy.sparse import csr_array

        matrix = csr_array(([5.0, 3.0], ([0, 2], [1, 3])), shape=(4, 6))
        model = MixedALS(dims=(1, 2), reg=0.1, biases=True).fit(Interactions.from_matrix(matrix))
        assert np.isfinite(model.user_vectors_).all()
        assert not model.user_vectors_[[1, 3]].any()
        assert model.predict([1], [0])[0] == pytest.approx(model.mean_)

    @pytest.mark.parametrize("projection", ["learned", "padded"])
    def test_constant_ratings(self, stars, projection):
        frame = stars.to_frame()
        data = Interactions.from_arrays(frame["user"], frame["item"], np.full(len(frame), 3.0))
        model = MixedALS(projection=projection, reg=0.01, projection_reg=1.0).fit(data)
        error = model.predict(frame["user"], frame["item"]) - 3.0
        assert np.sqrt(np.mean(error**2)) < 0.05

    @pytest.mark.parametrize("dims", [2, 40])
    def test_no_penalty_and_singular_systems(self, dims):
        # More dimensions than ratings: infinitely many solutions.
        users = np.repeat(np.arange(20), 3)
        items = (users * 7 + np.tile(np.arange(3), 20)) % 11
        data = Interactions.from_arrays(users, items, np.arange(60) % 5 + 1.0)
        model = MixedALS(dims=dims, reg=0.0, iterations=3).fit(data)
        assert np.isfinite(model.user_vectors_).all()
        assert np.isfinite(model.item_vectors_).all()

    @pytest.mark.parametrize("dims", [2, 20])
    def test_an_overflowing_row_is_named(self, stars, dims):
        frame = stars.to_frame()
        ratings = frame["rating"].to_numpy().copy()
        ratings[frame["user"].to_numpy() == 7] = 3e38
        data = Interactions.from_arrays(frame["user"].cast(str), frame["item"], ratings)
        with pytest.raises(SolveError, match=r"overflows.*Its id: "):
            MixedALS(dims=dims).fit(data)

    @pytest.mark.slow
    @pytest.mark.parametrize("dims", [4, 24])
    def test_a_row_of_a_million_ratings(self, dims):
        n = 1_100_000
        items = np.zeros(n, np.int64)
        data = Interactions.from_arrays(np.arange(n), items, np.arange(n) % 2 + 1.0)
        model = MixedALS(dims=dims, reg=1e-3, iterations=2).fit(data)
        one, two = model.predict([10, 11], [0, 0])
        assert 0.5 < one < 1
        assert two == pytest.approx(2 * one, rel=1e-5)


def test_singular_projections_say_what_to_do(stars):
    data = Interactions.from_arrays([1, 2, 2], [1, 1, 2], [1.0, 1.0, 1.0])
    estimator = MixedALS((1, 3), {"users": [1, 3], "items": [1, 3]}, projection_reg=0.0)
    with pytest.raises(SolveError, match="raise projection_reg"):
        estimator.fit(data)


def test_sums_of_a_projection_add_up_across_parts(stars):
    problem, model = prepared(MixedALS(), stars)
    side, ratings = model.users, problem.by_user
    tier = side.tiers[0]
    whole = ProjectionProblem(side, model.items, ratings, 1.0, 0.0, tier).sums()
    halves = [
        ProjectionProblem(
            side, model.items, ratings, 1.0, 0.0, Tier(tier.rows[part], tier.factors[part])
        ).sums()
        for part in (slice(0, 40), slice(40, None))
    ]
    total = halves[0] + halves[1]
    np.testing.assert_allclose(total.packed, whole.packed, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.rhs, whole.rhs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        total.solve(1.0, "users"), whole.solve(1.0, "users"), rtol=1e-3, atol=1e-5
    )
