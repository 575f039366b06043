"""Budgets on the command line: one, several from one pilot, and in a search."""

import warnings

import numpy as np
import polars as pl
import pytest

from mixedals import BudgetSizing, MixedALS, load, split_by_time
from mixedals.plots import plot_frontier
from mixedals.trainer import TrainingInterrupted

FAST = ("--iterations", 4, "--eval-every", 2)
BUDGET = ("--projection", "padded", "--candidates", "1,2,4", *FAST)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "new.mixedals"


def model_of(stars, **budget):
    train, validation, _ = split_by_time(stars, (0.8, 0.1, 0.1))
    sizing = BudgetSizing(**budget, candidates=(1, 2, 4))
    model = MixedALS(
        sizing=sizing, projection="padded", iterations=4, eval_every=2, metric="rmse", reg=2
    )
    return model.fit(train, validation=validation.restrict_to(train))


def test_a_budget_is_the_librarys(run, ratings, stars, output):
    facts = run(
        "fit", ratings, "-o", output, "--budget", "0.6k", *BUDGET, "--reg", 2, "--split", "time",
        "--json",
    ).json  # fmt: skip
    expected = model_of(stars, parameters=600)
    np.testing.assert_array_equal(load(output).user_vectors_, expected.user_vectors_)
    assert facts["parameters"] == expected.n_parameters_ <= 600
    assert load(output).sizing == expected.sizing


def test_several_budgets_give_a_model_each(run, ratings, stars, output, tmp_path):
    plot = tmp_path / "frontier.png"
    done = run(
        "fit", ratings, "-o", output, "--budget", "0.5k,3kB", *BUDGET, "--reg", 2, "--split",
        "time", "--plot", plot, "--json",
    ).json  # fmt: skip
    paths = [tmp_path / "new-0.5k.mixedals", tmp_path / "new-3kB.mixedals"]
    assert [facts["model"] for facts in done["models"]] == list(map(str, paths))
    for path, budget in zip(paths, ({"parameters": 500}, {"bytes": 3000}), strict=True):
        expected = model_of(stars, **budget)
        np.testing.assert_array_equal(load(path).user_vectors_, expected.user_vectors_)
    methods = [point["method"] for point in done["points"]]
    assert methods.count("budget") == 2
    assert {"popularity rule", "plain ALS"} <= set(methods)
    assert all(0 < point["quality"] < 5 for point in done["points"])
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert not output.exists()


def test_several_budgets_are_a_table(run, ratings, output):
    shown = run("fit", ratings, "-o", output, "--budget", "500, 700", *BUDGET, "--split", "time")
    assert shown.code == 0
    for word in ("new-500.mixedals", "new-700.mixedals", "validation", "test"):
        assert word in shown.out
    assert "popularity" not in shown.out
    without = run("fit", ratings, "-o", output, "--budget", "500,700", *BUDGET)
    assert without.code == 0
    assert "validation" not in without.out


@pytest.mark.filterwarnings("ignore::mixedals.trainer.TrainingInterrupted")
def test_ctrl_c_in_the_pilot_ends_it_all(run, ratings, output, tmp_path, monkeypatch):
    def interrupted(fitted, *_, **__):
        warnings.warn("interrupted", TrainingInterrupted, stacklevel=2)
        return fitted

    monkeypatch.setattr(MixedALS, "fit", interrupted)
    done = run("fit", ratings, "-o", output, "--budget", "500,700", *BUDGET)
    assert done.code == 130
    assert done.err.splitlines()[-1] == "mixedals: interrupted"
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_part_without_the_metric_is_left_open(run, stars, output, tmp_path):
    rows = stars.binarise(at_most=2, at_least=4).to_frame()
    late = pl.col("timestamp").rank() > 0.88 * pl.len()
    rows = rows.with_columns(rating=pl.when(late).then(1.0).otherwise("rating"))
    ratings, plot = tmp_path / "likes.csv", tmp_path / "frontier.png"
    rows.write_csv(ratings)
    done = run(
        "fit", ratings, "-o", output, "--budget", "500,700", *BUDGET, "--split", "time", "--metric",
        "roc_auc", "--plot", plot,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "new-700.mixedals" in done.out
    assert "popularity rule" in done.out
    assert plot.exists()


def test_a_plan_says_what_the_pilot_takes(run, ratings):
    planned = run("fit", ratings, "--budget", "600", *BUDGET, "--dry-run", "--json").json
    assert planned["parameters"] == 600
    assert {tier["p"] for tier in planned["tiers"]} == {4}
    assert "The pilot" in run("fit", ratings, "--budget", "600", *BUDGET, "--dry-run").out
    small = run("fit", ratings, "--budget", "100", *BUDGET, "--dry-run")
    assert small.code == 3
    assert "leaves 100 parameters" in small.err


WRONG = {
    "text": (("--budget", "many"), 2, "'many' must be a number of parameters as in 500k or 1.2M"),
    "negative": (("--budget", "-3"), 2, "'-3' must be a number"),
    "zero": (("--budget", "0"), 2, "parameters=0: it must be a number above 0"),
    "nothing": (("--budget", "500,"), 2, "'' must be a number"),
    "the same": (("--budget", "700,700"), 2, "--budget: '700' and '700' are one budget"),
    "equal": (("--budget", "700, 0.7k"), 2, "'700' and '0.7k' are one budget"),
    "candidates": (("--budget", "500", "--candidates", "2,two"), 2, "--candidates"),
    "twice": (("--budget", "500", "--candidates", "2,2"), 2, "distinct integers"),
    "alone": (("--candidates", "2,4"), 2, "give --budget"),
    "bias": (("--budget", "900", "--candidates", "0,4"), 3, "learn biases"),
    "too little": (("--budget", "100"), 3, "leaves 100 parameters"),
    "checkpoint": (("--budget", "500,600", "--checkpoint", "c"), 2, "without --start and"),
    "no part": (("--budget", "500,600", "--plot", "p.png"), 2, "--split or --validation"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line(run, ratings, output, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    options, code, message = WRONG[name]
    done = run("fit", ratings, "-o", output, *options, *FAST)
    assert done.code == code
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_search_tries_budgets_too(run, ratings, tmp_path):
    model, settings, plot = (tmp_path / name for name in ("m.mixedals", "best.toml", "search.png"))
    found = run(
        "tune", ratings, "--split", "random", *FAST, "--dims", "2,4", "--random-state", 5,
        "--budget", "0.8k,2k", "--projection", "padded", "--trials", 6, "-o", model,
        "--save-settings", settings, "--plot", plot, "--json",
    ).json  # fmt: skip
    sizings = {row["sizing"] for row in found["frontier"]}
    assert "budget" in sizings
    again = tmp_path / "again.mixedals"
    assert run("fit", ratings, "--settings", settings, "-o", again).code == 0
    np.testing.assert_array_equal(load(again).user_vectors_, load(model).user_vectors_)
    wrong = run("tune", ratings, "--split", "random", "--budget", "5MB,6MB")
    assert wrong.code == 2
    assert "two numbers of parameters" in wrong.err


def test_the_frontier_is_drawn_by_method():
    points = pl.DataFrame(
        {"method": ["a", "b", "a"], "parameters": [300, 100, 200], "quality": [0.9, 0.5, 0.8]}
    )
    axes = plot_frontier(points, "roc_auc").axes[0]
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.lines}
    assert drawn == {"a": [200, 300], "b": [100]}
    assert "roc_auc" in axes.get_ylabel()
    unknown = points.with_columns(quality=pl.lit(None))
    assert not plot_frontier(unknown, "roc_auc").axes[0].lines
