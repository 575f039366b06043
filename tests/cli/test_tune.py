import tomllib

import numpy as np
import pytest

from mixedals import load

OPTIONS = (
    "--split", "random", "--iterations", 4, "--eval-every", 2, "--dims", "2,4", "--dims", "4,8",
    "--random-state", 5,
)  # fmt: skip


def test_tune_finds_keeps_and_fits_the_best(run, ratings, tmp_path):
    model, settings, plot = (tmp_path / name for name in ("m.mixedals", "best.toml", "search.png"))
    found = run(
        "tune", ratings, *OPTIONS, "--trials", 4, "-o", model, "--save-settings", settings,
        "--plot", plot, "--json",
    ).json  # fmt: skip
    assert found["trials"] == 4
    assert found["frontier"][-1]["metric"] == found["metric"]
    history = load(model).history_
    assert history["metric"].min() == found["metric"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert tomllib.loads(settings.read_text())["reg"] == found["reg"]
    again = tmp_path / "again.mixedals"
    assert run("fit", ratings, "--settings", settings, "-o", again).code == 0
    np.testing.assert_array_equal(load(again).user_vectors_, load(model).user_vectors_)


def test_a_search_goes_on_from_its_file(run, ratings, tmp_path):
    storage = ("--storage", tmp_path / "search.db")
    first = run("tune", ratings, *OPTIONS, *storage, "--trials", 2, "--json").json
    more = run("tune", ratings, *OPTIONS, *storage, "--trials", 5, "--json").json
    whole = run("tune", ratings, *OPTIONS, "--trials", 5, "--json").json
    assert first["trials"] == 2
    without_time = [
        [{name: of for name, of in row.items() if name != "seconds"} for row in result["frontier"]]
        for result in (more, whole)
    ]
    assert without_time[0] == without_time[1]
    other = run("tune", ratings, *OPTIONS, *storage, "--trials", 6, "--reg", "1,2")
    assert other.code == 3
    assert "the storage holds a search that differs in space" in other.err


def test_models_may_be_bounded(run, ratings):
    found = run("tune", ratings, *OPTIONS, "--trials", 6, "--max-parameters", 2100, "--json").json
    assert found["frontier"]
    assert all(row["n_parameters"] <= 2100 for row in found["frontier"])
    none = run("tune", ratings, *OPTIONS, "--trials", 2, "--max-parameters", 1)
    assert none.code == 3
    assert "no trial came to its end" in none.err


def test_the_frontier_is_shown(run, ratings):
    shown = run("tune", ratings, *OPTIONS, "--trials", 2, "--timeout", 60).out
    for word in ("Best at each number of parameters", "n_parameters", "gamma", "trials"):
        assert word in shown


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_plot_is_refused_before_the_search(run, ratings, tmp_path, suffix):
    done = run("tune", ratings, *OPTIONS, "--plot", tmp_path / "no" / f"search.{suffix}")
    assert done.code == 1
    assert "there is no folder" in done.err
