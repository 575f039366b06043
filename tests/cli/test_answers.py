"""Commands that ask a model answer as the library does."""

import csv
import io

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mixedals import Interactions, MixedALS
from mixedals.metrics import rmse
from mixedals.plan import fitted_tiers
from mixedals.ranking import evaluate_ranking


@pytest.fixture
def titles(fitted, tmp_path):
    """Titles of all items but the last."""
    path = tmp_path / "titles.csv"
    items = fitted.item_ids_[:-1]
    pl.DataFrame({"item": items, "title": [f"Nº {item}, uncut" for item in items]}).write_csv(path)
    return path


def assert_same(rows, expected):
    assert_frame_equal(pl.DataFrame(rows), expected, check_dtypes=False)


def test_recommend_some(run, fitted, model):
    expected = fitted.recommend([3, 1], k=4)
    assert_same(run("recommend", model, 3, 1, "-k", 4, "--json").rows, expected)
    done = run("recommend", model, 3, 1, "-k", 4)
    assert_frame_equal(pl.read_csv(io.StringIO(done.out)), expected, check_dtypes=False)


def test_recommend_what_was_seen_too(run, fitted, model):
    expected = fitted.recommend([3], k=120, exclude_seen=False)
    rows = run("recommend", model, 3, "-k", 120, "--include-seen", "--json").rows
    assert_same(rows, expected)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ndjson"])
def test_recommend_everybody_into_a_file(run, fitted, model, tmp_path, suffix):
    path = tmp_path / f"best.{suffix}"
    done = run("recommend", model, "-k", 3, "-o", path)
    assert (done.code, done.out) == (0, "")
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "ndjson": pl.read_ndjson}[suffix]
    assert_frame_equal(read(path), fitted.recommend(k=3), check_dtypes=suffix == "parquet")


def test_titles_stand_beside_the_items(run, fitted, model, titles):
    rows = run("recommend", model, 1, "-k", 120, "--titles", titles, "--json").rows
    last = fitted.item_ids_[-1]
    assert len(rows) > 50
    for row in rows:
        assert list(row) == ["user", "item", "title", "score", "rank"]
        assert row["title"] == (None if row["item"] == last else f"Nº {row['item']}, uncut")
    done = run("similar", model, 2, "--titles", titles)
    for row in csv.DictReader(io.StringIO(done.out)):
        assert row["title"] == ("" if row["similar_item"] == str(last) else
                                f"Nº {row['similar_item']}, uncut")  # fmt: skip


def test_similar(run, fitted, model):
    rows = run("similar", model, 2, 5, "-k", 3, "--json").rows
    assert_same(rows, fitted.similar_items([2, 5], k=3))
    rows = run("similar", model, 2, "-k", 3, "--users", "--metric", "dot", "--json").rows
    assert_same(rows, fitted.similar_users([2], k=3, metric="dot"))


def test_predict(run, fitted, model, tmp_path):
    pairs = pl.DataFrame({"who": [1, 2, 10**9], "what": [1, 2, 1], "more": ["a", "b", "c"]})
    pairs.write_csv(tmp_path / "pairs.csv")
    columns = ("--user", "who", "--item", "what")
    done = run("predict", model, tmp_path / "pairs.csv", *columns, "--json")
    assert [list(row) for row in done.rows] == [["who", "what", "prediction"]] * 3
    expected = fitted.predict(pairs["who"], pairs["what"])
    predicted = [row["prediction"] for row in done.rows]
    assert predicted[:2] == pytest.approx(expected[:2].tolist())
    assert predicted[2] is None
    path = tmp_path / "predicted.parquet"
    stdin = (tmp_path / "pairs.csv").read_bytes()
    assert run("predict", model, "-", *columns, "--mean", "-o", path, stdin=stdin).code == 0
    expected = fitted.predict(pairs["who"], pairs["what"], unknown="mean")
    np.testing.assert_array_equal(pl.read_parquet(path)["prediction"].to_numpy(), expected)


def test_ids_in_a_file_are_read_as_the_model_has_them(run, tmp_path):
    users, items = ["007", "bond", "007", "bond"], ["1", "1", "2", "q"]
    model = MixedALS(dims=2, reg=0.1, iterations=2)
    model.fit(Interactions.from_arrays(users, items, [1.0, 5.0, 3.0, 4.0]))
    model.save(tmp_path / "spies.mixedals")
    (tmp_path / "pairs.csv").write_text("user,item,rating,title\n007,1,2,One\nbond,2,5,Two\n")
    (tmp_path / "new.csv").write_text("user,item,rating\n007,q,5\n")
    rows = run("predict", tmp_path / "spies.mixedals", tmp_path / "pairs.csv", "--json").rows
    assert rows[0]["user"] == "007"
    expected = model.predict(["007", "bond"], ["1", "2"]).tolist()
    assert [row["prediction"] for row in rows] == pytest.approx(expected)
    scores = run("evaluate", tmp_path / "spies.mixedals", tmp_path / "new.csv", "--json").json
    assert scores["ratings"] == scores["n_relevant"] == 1
    titles = ("--titles", tmp_path / "pairs.csv")
    rows = run("recommend", tmp_path / "spies.mixedals", "bond", *titles, "--json").rows
    assert [(row["item"], row["title"]) for row in rows] == [("2", "Two")]


def test_evaluate(run, fitted, model, stars, ratings):
    scores = run("evaluate", model, ratings, "--split", "time", "-k", 5, "--json").json
    from mixedals import split_by_time

    _, _, test = split_by_time(stars, (0.8, 0.1, 0.1))
    expected = evaluate_ranking(fitted, test, 5)
    for name in ("recall", "ndcg", "map", "coverage", "n_users", "n_relevant", "n_unknown"):
        assert scores[name] == getattr(expected, name)
    assert scores["deciles"] == expected.deciles.rows(named=True)
    pairs = test.restrict_to(fitted_interactions(fitted)).to_frame()
    predicted = fitted.predict(pairs["user"], pairs["item"])
    assert scores["rmse"] == pytest.approx(rmse(pairs["rating"], predicted))
    assert scores["ratings"] == len(pairs)
    shown = run("evaluate", model, ratings, "--split", "time").out
    for word in ("recall", "ndcg", "map", "coverage", "rmse", "decile"):
        assert word in shown


def fitted_interactions(model):
    """Ratings of all that the model knows, whatever they are."""
    n = max(len(model.user_ids_), len(model.item_ids_))
    users, items = np.resize(model.user_ids_, n), np.resize(model.item_ids_, n)
    return Interactions.from_arrays(users, items, np.ones(n), duplicates="last")


def test_inspect(run, fitted, model):
    facts = run("inspect", model, "--json").json
    assert facts["parameters"] == fitted.n_parameters_
    assert facts["tiers"] == fitted_tiers(fitted).rows(named=True)
    assert facts["history"] == fitted.history_.rows(named=True)
    shown = run("inspect", model).out
    assert "Where the parameters went" in shown
    assert f"{fitted.n_parameters_:,}" in shown


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"),
                                               ("pdf", b"%PDF")])  # fmt: skip
def test_inspect_draws(run, model, tmp_path, suffix, magic):
    path = tmp_path / f"model.{suffix}"
    assert run("inspect", model, "--plot", path).code == 0
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize("form", ["parquet", "numpy", "usearch", "compact"])
def test_export(run, fitted, model, tmp_path, form):
    folder = tmp_path / "vectors"
    facts = run("export", model, "--as", form, "-o", folder, "--json").json
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == facts["bytes"]
    if form == "usearch":
        assert facts["recall_at_10"]["expansion_search=256"] > 0.99
    shown = run("export", model, "--as", form, "-o", folder).out
    assert all(name in shown for name in facts["bytes"])
