from dataclasses import replace

import numpy as np
import pytest

from mixedals import MixedALS, split_at_random
from mixedals.model import Seen
from mixedals.plan import fitted_tiers
from mixedals.plots import plot_model, plot_search, save
from mixedals.tuning import Search, SearchSpace


@pytest.fixture(scope="module")
def parts(stars):
    train, validation = split_at_random(stars, (0.8, 0.2), random_state=0)
    return train, validation.restrict_to(train)


@pytest.fixture(scope="module")
def search(parts):
    model = MixedALS(iterations=4, eval_every=2, metric="rmse")
    found = Search(*parts, model, SearchSpace(dims=((2,), (2, 4), (4, 8))))
    found.run(12)
    return found


def numbers(lines):
    return np.concatenate([np.column_stack(line.get_data()) for line in lines])


def test_the_history_is_drawn_as_it_was(parts):
    model = MixedALS(iterations=6, eval_every=2, metric="rmse")
    model.fit(parts[0], validation=parts[1])
    objective, sizes, *_, metric = plot_model(model).axes
    history = model.history_
    drawn = numbers(objective.lines)
    np.testing.assert_array_equal(drawn[:, 0], history["iteration"])
    np.testing.assert_array_equal(drawn[:, 1], history["objective"])
    evaluated = history.drop_nulls("metric")
    np.testing.assert_array_equal(metric.lines[0].get_data()[1], evaluated["metric"])
    assert metric.lines[1].get_data()[0][0] == model.best_iteration_
    assert "rmse" in metric.get_ylabel()
    heights = sum(bar.get_height() for bar in sizes.patches)
    assert heights == fitted_tiers(model)["parameters"].sum()
    assert [label.get_text() for label in sizes.get_xticklabels()] == ["2", "4", "6"]


def test_a_model_without_its_training_pairs_is_drawn(stars):
    model = MixedALS(iterations=1).fit(stars)
    nothing = Seen(np.zeros(stars.n_users + 1, np.int64), np.empty(0, np.int32))
    model._model = replace(model._model, seen=nothing)
    assert plot_model(model).axes[0].get_title() == "Training"


@pytest.mark.parametrize("parameters", [{"dims": 4}, {"projection": "padded"}, {"iterations": 1}])
def test_a_model_without_validation_has_no_metric(stars, parameters):
    figure = plot_model(MixedALS(**{"iterations": 3} | parameters).fit(stars))
    assert [axes.get_title() for axes in figure.axes] == [
        "Training",
        "Where the parameters went",
        "Sizes of users by popularity",
        "Sizes of items by popularity",
    ]


def test_a_search_is_drawn_as_it_was(search):
    frontier, *others = plot_search(search).axes
    drawn = numbers(frontier.lines)
    np.testing.assert_array_equal(drawn[:, 0], search.frontier()["n_parameters"])
    np.testing.assert_array_equal(drawn[:, 1], search.frontier()["metric"])
    searched = ["dims", "gamma", "reg", "projection_reg", "reg_exponent"]
    assert [axes.get_xlabel() for axes in others] == searched
    for axes, name in zip(others[1:], searched[1:], strict=True):
        points = axes.collections[0].get_offsets()
        np.testing.assert_array_equal(np.sort(points[:, 0]), search.trials[name].sort())


def test_a_search_of_fewer_parameters(parts):
    model = MixedALS(iterations=2, projection="padded", metric="rmse")
    search = Search(*parts, model, SearchSpace(dims=((2, 4),), reg=(1.0, 1.0)))
    search.run(1)
    assert len(plot_search(search).axes) == 5


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_saved_figures_are_whole_files(search, tmp_path, suffix):
    path = tmp_path / f"search{suffix}"
    save(plot_search(search), path)
    assert path.stat().st_size > 5000
    assert [*tmp_path.iterdir()] == [path]
