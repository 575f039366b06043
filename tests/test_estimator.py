import numpy as np
import pytest
from sklearn.base import clone

from mixedals import Interactions, MixedALS, UniformSizing, split_at_random


@pytest.fixture(scope="module")
def parts(likes) -> tuple[Interactions, Interactions]:
    train, held_out = split_at_random(likes, (0.8, 0.2), random_state=0)
    return train, held_out.restrict_to(train)


BAD = {
    "dims": [0, (), (2, 2), 1.5, "6", True, 4097],
    "sizing": [0.2, {"users": UniformSizing()}, {"users": "abc", "items": UniformSizing()}],
    "projection": ["learnt", None],
    "reg": [-1, 1e39, float("nan"), float("inf"), "3", {"users": 1.0}, (1.0, 2.0)],
    "reg_exponent": [-0.5, None],
    "projection_reg": [-1],
    "projection_sampling": [True, "sampled"],
    "global_mean": [1],
    "biases": ["yes"],
    "iterations": [0, 2.5],
    "eval_every": [0],
    "metric": ["auc", None],
    "patience": [0],
    "random_state": [-1, 0.5],
    "n_threads": [0, -1],
    "progress": ["bar"],
    "callback": [3],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in BAD.items() for v in vs])
def test_bad_parameters_are_named_at_fit(stars, name, value):
    estimator = MixedALS(**{name: value})
    with pytest.raises(ValueError, match=rf"^{name}=.*must be"):
        estimator.fit(stars)


def test_every_parameter_has_a_range():
    from mixedals._parameters import RANGES

    assert set(RANGES) == set(MixedALS().get_params())
    assert set(BAD) == set(RANGES)


def test_clone_and_set_params(stars):
    estimator = MixedALS(iterations=2).set_params(reg=2.0, dims=(1, 3))
    copy = clone(estimator)
    np.testing.assert_array_equal(copy.fit(stars).user_vectors_, estimator.fit(stars).user_vectors_)


def test_the_best_iteration_is_kept_whole(parts):
    train, valid = parts
    values = iter([0.1, 0.9, 0.5, 0.9])
    model = MixedALS(iterations=8, eval_every=2, metric=lambda *_: next(values))
    model.fit(train, validation=valid)
    assert model.best_iteration_ == 4
    assert model.history_["metric"].to_list() == [None, 0.1, None, 0.9, None, 0.5, None, 0.9]
    four = MixedALS(iterations=4).fit(train)
    np.testing.assert_array_equal(model.user_vectors_, four.user_vectors_)
    np.testing.assert_array_equal(model.item_vectors_, four.item_vectors_)


def test_patience(parts):
    train, valid = parts
    values = iter([0.5, 0.9, 0.8, 0.7, 0.99])
    model = MixedALS(iterations=50, eval_every=3, patience=2, metric=lambda *_: next(values))
    model.fit(train, validation=valid)
    assert len(model.history_) == 12
    assert model.best_iteration_ == 6


def test_the_last_iteration_is_evaluated(parts):
    train, valid = parts
    model = MixedALS(iterations=7, eval_every=5).fit(train, validation=valid)
    assert model.history_["metric"].is_not_null().to_list() == [False] * 4 + [True, False, True]


def test_a_metric_that_is_never_a_number_keeps_the_last_iteration(parts):
    train, valid = parts
    model = MixedALS(iterations=6, eval_every=4, metric=lambda *_: np.nan)
    with pytest.warns(UserWarning, match="NaN at every evaluation"):
        model.fit(train, validation=valid)
    assert model.best_iteration_ == 6
    values = iter([np.nan, 0.5, np.nan])
    model = MixedALS(iterations=3, eval_every=1, metric=lambda *_: next(values))
    assert model.fit(train, validation=valid).best_iteration_ == 2


def test_only_true_ends_a_training(stars):
    for answer in (1, np.ones(3), "yes"):
        model = MixedALS(iterations=3, callback=lambda _, answer=answer: answer).fit(stars)
        assert model.best_iteration_ == 3


def test_what_cannot_be_fitted_says_why(stars):
    frame = stars.to_frame()
    pairs = frame.select("user", "item")
    with pytest.raises(ValueError, match="y is None"):
        MixedALS().fit(pairs)
    with pytest.raises(ValueError, match="y is given"):
        MixedALS().fit(stars, frame["rating"])
    with pytest.raises(ValueError, match="there are no ratings"):
        MixedALS().fit(stars.subset([]))
    with pytest.raises(TypeError, match="validation must be Interactions, not DataFrame"):
        MixedALS().fit(stars, validation=frame)
    with pytest.raises(TypeError, match="new rows come as Interactions, not DataFrame"):
        MixedALS(iterations=1).fit(stars).fold_in_users(frame)
    with pytest.raises(ValueError, match=r"reg_exponent=1e\+38.*overflows single precision"):
        MixedALS(reg_exponent=1e38).fit(stars)
    weightless = Interactions.from_arrays(*frame.to_dict().values(), weights=np.zeros(len(frame)))
    with pytest.raises(ValueError, match="weight 0"):
        MixedALS().fit(weightless)


def test_metrics_are_those_of_predictions(parts):
    train, valid = parts
    from mixedals.metrics import rmse, roc_auc

    frame = valid.to_frame()
    for name, function in (("roc_auc", roc_auc), ("rmse", rmse)):
        model = MixedALS(iterations=3, eval_every=3, metric=name).fit(train, validation=valid)
        predicted = model.predict(frame["user"], frame["item"])
        assert model.history_["metric"][-1] == function(frame["rating"].to_numpy(), predicted)


def test_history(stars):
    history = MixedALS(iterations=3).fit(stars).history_
    assert history["iteration"].to_list() == [1, 2, 3]
    terms = ["squared_error", "penalty_users", "penalty_items", "penalty_projections"]
    total = sum(history[term] for term in terms)
    np.testing.assert_allclose(history["objective"], total)
    assert (history["objective"].diff().drop_nulls() <= 0).all()


def test_callback_sees_every_iteration_and_may_stop(stars):
    seen = []

    def callback(record):
        seen.append(record.iteration)
        return len(seen) == 2

    model = MixedALS(iterations=9, callback=callback).fit(stars)
    assert seen == [1, 2]
    assert model.best_iteration_ == 2


def test_interrupt_keeps_the_last_whole_iteration(stars, monkeypatch):
    from mixedals import trainer

    whole, calls = trainer.solve_rows, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 6:  # in the middle of the third iteration
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(trainer, "solve_rows", interrupted)
    with pytest.warns(UserWarning, match="interrupted.*iteration 2"):
        model = MixedALS(iterations=9).fit(stars)
    monkeypatch.undo()
    np.testing.assert_array_equal(
        model.user_vectors_, MixedALS(iterations=2).fit(stars).user_vectors_
    )


def test_interrupt_before_any_iteration_is_passed_on(stars, monkeypatch):
    from mixedals import trainer

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "solve_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MixedALS().fit(stars)


def test_warm_start(stars):
    first = MixedALS(iterations=5).fit(stars)
    cold, warm = MixedALS(iterations=1), MixedALS(iterations=1)
    cold.fit(stars)
    warm.fit(stars, start=first)
    six = MixedALS(iterations=6).fit(stars)
    np.testing.assert_array_equal(warm.user_vectors_, six.user_vectors_)
    assert warm.history_["objective"][0] < cold.history_["objective"][0]


def test_warm_start_with_new_rows_and_sizes(stars):
    frame = stars.to_frame()
    fewer = Interactions.from_frame(frame.filter(frame["user"] > 40))
    known = MixedALS(iterations=3, biases=True).fit(fewer)
    warm = MixedALS(iterations=1, biases=True).fit(stars, start=known)
    cold = MixedALS(iterations=1, biases=True).fit(stars)
    assert warm.history_["objective"][0] < cold.history_["objective"][0]
    MixedALS(dims=3, iterations=1).fit(stars, start=known)


def test_warm_start_from_a_model_with_an_empty_tier(stars):
    model = MixedALS(iterations=1).fit(stars)
    largest = stars.users[model.user_dims_ == 6]
    frame = stars.to_frame()
    frame = frame.filter(frame["user"].is_in(largest.tolist()))
    folded = model.fold_in_users(Interactions.from_frame(frame), dims=[2] * len(largest))
    assert 6 not in folded.user_dims_
    MixedALS(iterations=1).fit(stars, start=folded)


def test_validation_of_unknown_rows_is_said(likes):
    train, held_out = split_at_random(likes, (0.5, 0.5), random_state=0)
    frame = held_out.to_frame()
    strange = Interactions.from_arrays(frame["user"] + 200, frame["item"], frame["rating"])
    with pytest.warns(UserWarning, match=r"validation: \d+ of \d+ ratings.*restrict_to"):
        MixedALS(iterations=1).fit(train, validation=strange)
    nobody = Interactions.from_arrays(frame["user"] + 2000, frame["item"], frame["rating"])
    with pytest.raises(ValueError, match="none of its ratings"):
        MixedALS(iterations=1).fit(train, validation=nobody)


def test_embeddings_that_are_all_but_zero_are_said():
    data = Interactions.from_arrays([1, 1, 2], [1, 2, 1], [1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="all but 0.*lower reg or projection_reg"):
        MixedALS(reg=10).fit(data)


def test_what_the_model_gives_cannot_be_changed(stars):
    model = MixedALS(iterations=1, biases=True).fit(stars)
    for name in ("vectors", "dims", "biases", "ids"):
        for side in ("user", "item"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(model, f"{side}_{name}_")[0] = 0


def test_roc_auc_of_stars_says_to_binarise(stars):
    with pytest.raises(ValueError, match=r'Binarise.*metric="rmse"'):
        MixedALS(iterations=1).fit(stars, validation=stars)


def test_random_states(stars):
    def vectors(state):
        return MixedALS(iterations=1, random_state=state).fit(stars).user_vectors_

    np.testing.assert_array_equal(vectors(3), vectors(3))
    assert not np.array_equal(vectors(3), vectors(4))
    for make in (np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(vectors(make(1)), vectors(make(1)))
    assert not np.array_equal(vectors(None), vectors(None))


def test_weights_of_one_change_nothing_and_of_zero_leave_out(stars, rng):
    frame = stars.to_frame()
    columns = frame["user"], frame["item"], frame["rating"]
    ones = Interactions.from_arrays(*columns, weights=np.ones(len(frame)))
    plain = MixedALS(iterations=2).fit(stars).user_vectors_
    np.testing.assert_allclose(
        MixedALS(iterations=2).fit(ones).user_vectors_, plain, rtol=1e-3, atol=1e-4
    )
    kept = rng.random(len(frame)) < 0.7
    zeros = Interactions.from_arrays(*columns, weights=kept)
    left = Interactions.from_arrays(*(column.filter(kept) for column in columns))
    sizes = {
        "users": dict.fromkeys(stars.users.tolist(), 2),
        "items": dict.fromkeys(stars.items.tolist(), 4),
    }
    np.testing.assert_allclose(
        MixedALS(sizing=sizes, projection="padded", iterations=2).fit(zeros).user_vectors_,
        MixedALS(sizing=sizes, projection="padded", iterations=2).fit(left).user_vectors_,
        rtol=1e-3, atol=1e-4,
    )  # fmt: skip
