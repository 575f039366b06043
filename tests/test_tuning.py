import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mixedals import MixedALS, PopularitySizing, split_at_random
from mixedals.plan import plan
from mixedals.synthetic import generate_ratings
from mixedals.tuning import Search, SearchSpace

SPACE = SearchSpace(dims=((2, 4), (2, 4, 8)))
FAST = MixedALS(iterations=6, eval_every=2, metric="rmse")


@pytest.fixture(scope="module")
def parts():
    train, validation = split_at_random(
        generate_ratings(200, 80, 4000, random_state=3), (0.8, 0.2), random_state=0
    )
    return train, validation.restrict_to(train)


@pytest.fixture(scope="module")
def searched(parts):
    search = Search(*parts, FAST, SPACE, random_state=7)
    search.run(16)
    return search


def without_time(trials):
    return trials.drop("seconds")


@pytest.mark.filterwarnings("ignore:the predictions are all but 0")
def test_every_trial_is_in_the_space_and_says_the_truth(parts, searched):
    trials = searched.trials
    assert len(trials) + len(pruned(searched)) == searched.n_done == 16
    assert set(trials["dims"]) <= {"2,4", "2,4,8"}
    for name in ("gamma", "reg", "reg_exponent", "projection_reg"):
        assert trials[name].is_between(*getattr(SPACE, name)).all()
        assert trials[name].n_unique() == len(trials)
    for trial in trials.head(3).iter_rows(named=True):
        model = searched.estimator(trial)
        assert model.sizing == PopularitySizing(trial["gamma"])
        assert plan(model, parts[0]).n_parameters == trial["n_parameters"]
        model.fit(parts[0], validation=parts[1])
        assert model.n_parameters_ == trial["n_parameters"]
        assert model.best_iteration_ == trial["best_iteration"]
        assert model.history_["metric"].min() == trial["metric"]


def test_the_best_trial_is_the_estimators(searched):
    best = searched.trials.sort("metric").row(0, named=True)
    model = searched.estimator()
    assert model.reg == best["reg"]
    assert ",".join(map(str, model.dims)) == best["dims"]


def pruned(search):
    import optuna

    return search.study.get_trials(states=(optuna.trial.TrialState.PRUNED,))


def test_poor_trials_end_early(searched):
    ended = pruned(searched)
    assert ended
    for trial in ended:
        assert 0 < len(trial.intermediate_values) < 3


@pytest.mark.parametrize("metric", ["rmse", "roc_auc"])
def test_the_frontier_is_what_nothing_smaller_beats(parts, searched, metric):
    search = searched
    if metric == "roc_auc":
        likes = [part.binarise() for part in parts]
        search = Search(likes[0], likes[1].restrict_to(likes[0]), FAST_AUC, SPACE, random_state=1)
        search.run(10)
    trials = search.trials
    sign = 1 if metric == "roc_auc" else -1
    rows = trials.select("n_parameters", "metric").rows()
    kept = [
        (n, value)
        for n, value in rows
        if not any(
            other <= n and sign * of >= sign * value and (other, of) != (n, value)
            for other, of in rows
        )
    ]
    assert search.frontier().select("n_parameters", "metric").rows() == sorted(kept)


FAST_AUC = MixedALS(iterations=4, eval_every=2)


def test_models_beyond_the_budget_are_passed_over(parts):
    search = Search(*parts, FAST, SPACE, max_parameters=1000)
    search.run(8)
    assert search.n_done == 8
    assert (search.trials["n_parameters"] <= 1000).all()
    assert len(search.trials) < 8


def test_the_estimators_other_parameters_stay(parts):
    search = Search(*parts, MixedALS(iterations=2, projection="padded", biases=True, metric="rmse"))
    search.run(2)
    assert "projection_reg" not in search.trials.columns
    assert search.estimator().biases
    assert search.estimator().projection == "padded"


@pytest.mark.slow
def test_a_search_that_stopped_goes_on_as_if_it_had_not(parts, searched, tmp_path):
    storage = tmp_path / "search.db"
    for n_trials in (2, 5, 8):
        search = Search(*parts, FAST, SPACE, storage=storage, random_state=7)
        search.run(n_trials)
        assert search.n_done == n_trials
    of_whole = searched.trials.filter(pl.col("number") < 8)
    assert_frame_equal(without_time(search.trials), without_time(of_whole))


KILLED = """
from mixedals import MixedALS, split_at_random
from mixedals.synthetic import generate_ratings
from mixedals.tuning import Search, SearchSpace
data = generate_ratings(200, 80, 4000, random_state=3)
train, validation = split_at_random(data, (0.8, 0.2), random_state=0)
search = Search(
    train, validation.restrict_to(train), MixedALS(iterations=6, eval_every=2, metric="rmse"),
    SearchSpace(dims=((2, 4), (2, 4, 8))), storage="search.db", random_state=7,
)
search.run(100_000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "ctrl-c"])
def test_a_search_that_was_killed_goes_on(parts, searched, tmp_path, how):
    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    storage = tmp_path / "search.db"
    for _ in range(1200):
        if done_in(storage) >= 3:
            break
        time.sleep(0.05)
    process.send_signal(how)
    process.wait(60)
    search = Search(*parts, FAST, SPACE, storage=storage, random_state=7)
    before = search.n_done
    assert before >= 3
    search.run(before + 3)
    ours, whole = without_time(search.trials), without_time(searched.trials)
    n = min(len(ours), len(whole))
    # A trial that was cut off stays in the storage, so those after it have later numbers.
    assert_frame_equal(ours.drop("number").head(n), whole.drop("number").head(n))


def done_in(storage: Path) -> int:
    if not storage.exists():
        return 0
    with sqlite3.connect(f"file:{storage}?mode=ro", uri=True, timeout=5) as connection:
        try:
            query = "SELECT count(*) FROM trials WHERE state IN ('COMPLETE', 'PRUNED')"
            return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def test_a_storage_of_another_search_is_refused(parts, tmp_path):
    storage = tmp_path / "search.db"
    train, validation = parts
    Search(train, validation, FAST, SPACE, storage=storage)
    half, _ = split_at_random(train, (0.5, 0.5))
    others = {
        "train": (half, validation.restrict_to(half), FAST, SPACE),
        "validation": (train, validation.restrict_to(half), FAST, SPACE),
        "estimator": (train, validation, MixedALS(iterations=7, metric="rmse"), SPACE),
        "space": (train, validation, FAST, SearchSpace(dims=((2, 4), (4, 8)))),
    }
    for name, arguments in others.items():
        with pytest.raises(ValueError, match=rf"differs in .*{name}.*give another file"):
            Search(*arguments, storage=storage)
    Search(train, validation, FAST, SPACE, storage=storage)


def test_a_storage_that_is_no_search_is_an_error(parts, tmp_path):
    (tmp_path / "search.db").write_bytes(os.urandom(1000))
    with pytest.raises(ValueError, match=r"search\.db.*not a search that goes on"):
        Search(*parts, FAST, SPACE, storage=tmp_path / "search.db")
    with pytest.raises(OSError, match="no folder"):
        Search(*parts, FAST, SPACE, storage=tmp_path / "no" / "search.db")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"reg": (1.0, 0.5)}, r"reg=\(1\.0, 0\.5\).*least and a largest value, above 0"),
        ({"gamma": (0.0, 1.0)}, "gamma.*above 0"),
        ({"reg_exponent": (-1.0, 1.0)}, "reg_exponent.*from 0"),
        ({"projection_reg": (1.0,)}, "projection_reg"),
        ({"reg": (1.0, np.inf)}, "reg"),
        ({"dims": ()}, "dims"),
        ({"dims": ((2, 0),)}, "dims"),
    ],
)
def test_a_wrong_space_is_an_error(space, message):
    with pytest.raises(ValueError, match=message):
        SearchSpace(**space)


def test_no_trial_yet(parts):
    search = Search(*parts, FAST, SPACE)
    assert search.n_done == 0
    assert search.trials.is_empty()
    assert search.frontier().is_empty()
    with pytest.raises(ValueError, match="no trial"):
        search.estimator()


def test_time_may_be_up(parts):
    search = Search(*parts, FAST, SPACE)
    search.run(1000, timeout=0)
    assert search.n_done == 0
    assert isinstance(search.trials, pl.DataFrame)
