import json

import numpy as np
import polars as pl
import pytest

from mixedals import (
    MixedALS,
    PopularitySizing,
    PowerLawSizing,
    UniformSizing,
    load,
    split_by_time,
)
from mixedals.metrics import rmse

FAST = ("--iterations", 4, "--eval-every", 2)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "new.mixedals"


def assert_same_model(path, model):
    loaded = load(path)
    np.testing.assert_array_equal(loaded.user_vectors_, model.user_vectors_)
    np.testing.assert_array_equal(loaded.item_vectors_, model.item_vectors_)
    np.testing.assert_array_equal(loaded.user_ids_, model.user_ids_)


def test_fit_is_the_librarys(run, ratings, stars, output):
    facts = run(
        "fit", ratings, "-o", output, "--dims", "2,4", "--gamma", 0.5, "--reg", "users=2,items=3",
        "--reg-exponent", 0.5, "--projection-reg", 50, "--biases", "--random-state", 3,
        "--split", "time", *FAST, "--json",
    ).json  # fmt: skip
    train, validation, test = split_by_time(stars, (0.8, 0.1, 0.1))
    validation, test = validation.restrict_to(train), test.restrict_to(train)
    model = MixedALS(
        dims=(2, 4), sizing=PopularitySizing(0.5), reg={"users": 2, "items": 3}, reg_exponent=0.5,
        projection_reg=50, biases=True, random_state=3, iterations=4, eval_every=2, metric="rmse",
    ).fit(train, validation=validation)  # fmt: skip
    assert_same_model(output, model)
    assert facts["parameters"] == model.n_parameters_
    assert facts["ratings"] == len(train)
    assert facts["best_iteration"] == model.best_iteration_
    assert facts["columns"]["user"] == "user"
    assert not facts["interrupted"]
    pairs = test.to_frame()
    expected = rmse(pairs["rating"], model.predict(pairs["user"], pairs["item"]))
    assert facts["test"]["rmse"] == pytest.approx(expected)


@pytest.mark.parametrize("suffix", ["parquet", "tsv", "arrow", "ndjson"])
def test_ratings_come_in_any_format_and_in_parts(run, stars, ratings, tmp_path, output, suffix):
    write = {
        "parquet": pl.DataFrame.write_parquet,
        "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
        "arrow": pl.DataFrame.write_ipc,
        "ndjson": pl.DataFrame.write_ndjson,
    }[suffix]
    frame = stars.to_frame()
    for number, part in enumerate(frame.iter_slices(2000)):
        write(part, tmp_path / f"part-{number}.{suffix}")
    whole = tmp_path / "whole.mixedals"
    assert run("fit", tmp_path / f"part-*.{suffix}", "-o", whole, *FAST).code == 0
    one_by_one = sorted(tmp_path.glob(f"part-*.{suffix}"))
    assert run("fit", *one_by_one, "-o", output, *FAST).code == 0
    assert_same_model(whole, load(output))
    assert run("fit", ratings, "-o", output, *FAST).code == 0
    assert_same_model(whole, load(output))


@pytest.mark.parametrize("of", ["csv", "parquet"])
def test_ratings_come_from_standard_input(run, stars, ratings, tmp_path, output, of):
    stars.to_frame().write_parquet(tmp_path / "ratings.parquet")
    data = (tmp_path / "ratings.parquet").read_bytes() if of == "parquet" else ratings.read_bytes()
    done = run("fit", "-", "--stdin-format", of, "-o", output, *FAST, stdin=data)
    assert done.code == 0, done.err
    again = tmp_path / "again.mixedals"
    run("fit", ratings, "-o", again, *FAST)
    assert_same_model(again, load(output))


def test_columns_are_chosen(run, stars, tmp_path, output):
    names = {"user": "who", "item": "what", "rating": "points", "timestamp": "rating"}
    stars.to_frame().rename(names).write_csv(tmp_path / "odd.csv")
    columns = ("--user", "who", "--item", "what", "--rating", "points", "--timestamp", "")
    facts = run("fit", tmp_path / "odd.csv", "-o", output, *columns, *FAST, "--json").json
    assert facts["columns"] == {"user": "who", "item": "what", "rating": "points"}


def test_duplicates_are_merged_when_asked(run, tmp_path, output):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\na,x,1\na,x,3\nb,x,2\n")
    refused = run("fit", path, "-o", output)
    assert refused.code == 3
    assert "--duplicates last" in refused.err
    merged = run(
        "fit", path, "-o", output, "--duplicates", "mean", "--dims", 2, "--reg", 0.1, "--json"
    )
    assert merged.json["ratings"] == 2


def test_binarised_ratings_are_chosen_by_roc_auc(run, ratings, output):
    facts = run(
        "fit", ratings, "-o", output, "--binarise", "2,4", "--split", "random", *FAST, "--json"
    ).json
    assert 0 < facts["validation"]["roc_auc"] < 1
    assert load(output).metric == "roc_auc"


def test_a_file_may_serve_for_validation(run, ratings, tmp_path, output):
    other = tmp_path / "others.csv"
    other.write_text("user,item,rating\n1,1,3\n1,999999,4\n")
    facts = run("fit", ratings, "-o", output, "--validation", other, *FAST, "--json").json
    assert (facts["validation"]["ratings"], facts["validation"]["left_out"]) == (1, 1)


def test_ids_of_a_validation_file_are_read_as_those_of_the_ratings(run, tmp_path, output):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n007,x,1\nbond,x,5\n007,y,3\n")
    (tmp_path / "others.csv").write_text("user,item,rating\n007,x,2\n")
    facts = run(
        "fit", tmp_path / "ratings.csv", "-o", output, "--validation", tmp_path / "others.csv",
        "--reg", 0.1, *FAST, "--json",
    ).json  # fmt: skip
    assert facts["validation"]["ratings"] == 1


def test_settings_come_from_a_file_and_those_typed_come_first(run, ratings, tmp_path, output):
    settings = tmp_path / "settings.toml"
    settings.write_text(
        "dims = [2, 8]\nreg = {users = 1.0, items = 2.0}\niterations = 3\nglobal-mean = true\n"
        "sizing = 'uniform'\n"
    )
    assert run("fit", ratings, "-o", output, "--settings", settings, "--iterations", 2).code == 0
    model = load(output)
    assert tuple(model.dims) == (2, 8)
    assert model.reg == {"users": 1, "items": 2}
    assert model.global_mean
    assert len(model.history_) == 2
    assert (model.user_dims_ == 8).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense = 1", "there is no option nonsense; there are biases, binarise,"),
        ("reg = ", "settings.toml"),
        ("reg = 'much'", "'much' must be a number"),
        ("iterations = 'many'", "--iterations"),
    ],
)
def test_wrong_settings_are_named(run, ratings, tmp_path, output, text, message):
    settings = tmp_path / "settings.toml"
    settings.write_text(text)
    done = run("fit", ratings, "-o", output, "--settings", settings)
    assert done.code == 2
    assert message in done.err
    assert not output.exists()


def test_a_dry_run_says_what_training_would_make(run, ratings, output):
    options = (ratings, "--dims", "2,4,6", "--split", "time", "--biases", *FAST, "--json")
    planned = run("fit", *options, "--dry-run").json
    done = run("fit", *options, "-o", output).json
    for name in ("users", "items", "ratings", "parameters"):
        assert planned[name] == done[name]
    assert sum(tier["parameters"] for tier in planned["tiers"]) == planned["parameters"]
    assert planned["model_bytes"] > 4 * planned["parameters"]
    shown = run("fit", ratings, "--dry-run")
    assert shown.code == 0
    assert "kB of the model" in shown.out


@pytest.mark.parametrize(
    ("options", "sizing"),
    [
        (("power-law", "--temperature", 0.3, "--partitions", 4), PowerLawSizing(0.3, 4)),
        (("popularity", "--gamma", 1.5), PopularitySizing(1.5)),
        (("uniform",), UniformSizing()),
    ],
)
def test_sizings(run, ratings, stars, output, options, sizing):
    given = ("--dims", "2,4,8", "--projection", "padded")
    run("fit", ratings, "-o", output, *given, "--sizing", *options, *FAST)
    model = MixedALS(dims=(2, 4, 8), sizing=sizing, projection="padded", iterations=4).fit(stars)
    np.testing.assert_array_equal(load(output).user_dims_, model.user_dims_)
    np.testing.assert_array_equal(load(output).item_dims_, model.item_dims_)


def test_a_model_starts_from_another(run, ratings, model, output):
    facts = run("fit", ratings, "-o", output, "--start", model, "--dims", "2,4", *FAST, "--json")
    assert facts.json["iterations"] == 4
    cold = run("fit", ratings, "-o", model, "--dims", "2,4", *FAST)
    assert cold.code == 0
    first = [load(path).history_["objective"][0] for path in (output, model)]
    assert first[0] < first[1]


def test_a_checkpoint_is_gone_on_from(run, ratings, tmp_path, output):
    checkpoint = tmp_path / "state"
    options = ("fit", ratings, "-o", output, "--checkpoint", checkpoint, "--eval-every", 2)
    assert run(*options, "--iterations", 2).code == 0
    assert checkpoint.exists()
    assert run(*options, "--iterations", 4).code == 0
    whole = tmp_path / "whole.mixedals"
    run("fit", ratings, "-o", whole, "--eval-every", 2, "--iterations", 4)
    assert_same_model(whole, load(output))


def test_a_model_that_is_there_is_replaced_only_by_a_whole_one(run, ratings, model):
    before = model.read_bytes()
    assert run("fit", ratings, "-o", model, "--user", "nobody").code == 3
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]


def test_the_table_at_the_end_says_what_was_made(run, ratings, output):
    done = run("fit", ratings, "-o", output, *FAST)
    assert done.err == ""
    for word in ("users", "items", "ratings", "parameters", "seconds", str(output)[-20:]):
        assert word in done.out
    with pytest.raises(json.JSONDecodeError):
        json.loads(done.out)
