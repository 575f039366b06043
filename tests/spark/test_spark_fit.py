"""A fit on Spark is the fit of one machine."""

import os

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from spark_cases import assert_same_model, in_spark

from mixedals import Interactions, MixedALS
from mixedals import spark as on_spark

# One machine's parameters, and Spark's.
VARIANTS = {
    "plain": ({"dims": 6}, {"rank": 6}),
    "large": ({"dims": 20}, {"rank": 20}),
    "padded": ({"projection": "padded"}, {"dims": [2, 4, 6], "projection": "padded"}),
    "exponent": ({"dims": 4, "reg_exponent": 0.5}, {"rank": 4, "regExponent": 0.5}),
    "projected": ({"projection_reg": 10.0}, {"dims": [2, 4, 6], "projectionReg": 10.0}),
}


def fitted(frame, iterations=3, **parameters):
    blocks = {"numUserBlocks": 2, "numItemBlocks": 2}
    return on_spark.MixedALS(maxIter=iterations, **blocks | parameters).fit(frame)


@pytest.mark.slow
def test_a_fit_is_that_of_one_machine(star_frame, stars):
    model = fitted(star_frame, iterations=2, rank=6)
    alone = MixedALS(dims=6, iterations=2).fit(stars)
    assert_same_model(model.toLocal(), alone)
    assert model.history["objective"].to_list() == pytest.approx(alone.history_["objective"])
    assert model.rank == 6
    assert model.bestIteration == 2


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_model_is_that_of_one_machine(star_frame, stars, variant):
    of_one_machine, of_spark = VARIANTS[variant]
    model = fitted(star_frame, numUserBlocks=3, **of_spark)
    alone = MixedALS(iterations=3, **of_one_machine).fit(stars)
    # Sums over blocks are added in another order than those over threads.
    assert_same_model(model.toLocal(), alone, 2e-4 if variant == "projected" else 0.0)
    assert model.history["objective"].to_list() == pytest.approx(
        alone.history_["objective"], rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [(1, 1), (3, 8)])
def test_blocks_make_no_difference(star_frame, stars, blocks):
    parameters = {"numUserBlocks": blocks[0], "numItemBlocks": blocks[1]}
    model = fitted(star_frame.repartition(5), 2, dims=[2, 4], projection="padded", **parameters)
    alone = MixedALS(dims=(2, 4), projection="padded", iterations=2).fit(stars)
    assert_same_model(model.toLocal(), alone)


@pytest.mark.slow
def test_weights(spark, stars, rng):
    table = stars.to_frame().with_columns(weight=pl.Series(rng.uniform(0, 2, len(stars))))
    table = table.with_columns(pl.col("weight").cast(pl.Float32))
    model = fitted(in_spark(spark, table), rank=4, weightCol="weight")
    assert_same_model(model.toLocal(), MixedALS(dims=4, iterations=3).fit(
        Interactions.from_frame(table)
    ))  # fmt: skip
    assert model.toLocal()._fitted.mean_rating == pytest.approx(
        np.average(table["rating"], weights=table["weight"]), rel=1e-5
    )


# More blocks than rows (so that some are empty), one item in every row, ids of other types.
ODD = {
    "few": {"user": [1, 2, 2, 3], "item": [7, 7, 8, 8]},
    "strings": {"user": ["a", "b", "b", "ć"], "item": ["x", "x", "y", "z"]},
    "beyond 32 bits": {"user": [2**40, -5, 2**62, 3], "item": [2**33] * 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_data(spark, name):
    table = pl.DataFrame(ODD[name] | {"rating": [1.0, 2.0, 3.0, 4.0]})
    model = fitted(in_spark(spark, table), 2, rank=2, numUserBlocks=6, numItemBlocks=3)
    assert_same_model(model.toLocal(), MixedALS(dims=2, iterations=2).fit(
        Interactions.from_frame(table)
    ))  # fmt: skip


@pytest.mark.slow
def test_the_best_iteration_on_held_out_ratings_is_kept(spark, stars, likes):
    table = likes.to_frame().with_columns(held_out=pl.int_range(len(likes)) % 4 == 0)
    parameters = {"validationIndicatorCol": "held_out", "evalEvery": 1, "regParam": 0.1}
    model = fitted(
        in_spark(spark, table), 4, dims=[2, 4], projectionReg=1.0, metric="roc_auc", **parameters
    )
    train, held_out = (
        Interactions.from_frame(table.filter(pl.col("held_out") == there))
        for there in (False, True)
    )
    alone = MixedALS(
        dims=(2, 4), reg=0.1, projection_reg=1.0, iterations=4, eval_every=1
    ).fit(train, validation=held_out.restrict_to(train))  # fmt: skip
    assert model.bestIteration == alone.best_iteration_
    assert model.history["metric"].to_list() == pytest.approx(
        alone.history_["metric"].to_list(), abs=1e-3
    )


@pytest.mark.parametrize("metric", ["roc_auc", "rmse"])
def test_held_out_rows_that_training_does_not_know_are_told(spark, likes, metric):
    table = likes.to_frame().with_columns(held_out=pl.int_range(len(likes)) % 4 == 0)
    held_out = pl.col("held_out")
    users = pl.when(held_out).then(-pl.col("user")).otherwise(pl.col("user"))
    one = held_out & (pl.int_range(pl.len()) == 0)
    some = pl.when(one).then(-pl.col("user")).otherwise(pl.col("user"))
    parameters = {"validationIndicatorCol": "held_out", "evalEvery": 1, "metric": metric}
    with pytest.warns(UserWarning, match="a user or an item that training doesn't"):
        fitted(in_spark(spark, table.with_columns(some)), 1, rank=2, **parameters)
    with pytest.raises(ValueError, match="none of its ratings has both"):
        fitted(in_spark(spark, table.with_columns(users)), 1, rank=2, **parameters)


@pytest.mark.slow
@pytest.mark.skipif("MIXEDALS_SPARK_REMOTE" in os.environ, reason="asks the driver's own Spark")
def test_lineage_is_cut_and_nothing_stays_in_spark(spark, star_frame, stars, tmp_path):
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    model = fitted(star_frame, 3, rank=3, checkpointInterval=1)
    assert list(tmp_path.rglob("part-*"))
    assert_same_model(model.toLocal(), MixedALS(dims=3, iterations=3).fit(stars))
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before + 2  # the model's sides
    del model
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before


@pytest.mark.slow
def test_sums_of_projections_are_added_in_tasks_too(star_frame, monkeypatch):
    parameters = {"dims": [2, 4], "projectionReg": 10.0, "numUserBlocks": 5, "numItemBlocks": 5}
    model = fitted(star_frame, 2, **parameters)
    monkeypatch.setattr("mixedals.spark.halfsteps._DRIVER_BYTES", 0)
    monkeypatch.setattr("mixedals.spark.halfsteps._FAN_IN", 2)
    assert_same_model(fitted(star_frame, 2, **parameters).toLocal(), model.toLocal(), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rating": float("nan")}, r"user=2, item=5, rating=nan has a rating that isn't a finite"),
        ({"rating": None}, r"user=2, item=5, rating=None has a rating"),
        ({"rating": 1e300}, r"user=2, item=5, rating=inf has a rating that isn't a finite"),
        ({"user": None}, r"user=None, item=5, rating=4.0 has no user"),
        ({"user": 1}, r"user=1 has more than one rating of item=5"),
    ],
)
def test_bad_rows_are_named(spark, change, message):
    rows = [{"user": 1, "item": 5, "rating": 3.0}, {"user": 2, "item": 5, "rating": 4.0} | change]
    table = in_spark(spark, pl.DataFrame(rows, schema_overrides={"rating": pl.Float64}))
    with pytest.raises(ValueError, match=message):
        fitted(table, 1)


@pytest.mark.slow
def test_a_row_without_a_solution_is_named(spark):
    table = pl.DataFrame({"user": [1, 2], "item": [5, 6], "rating": [1.0, 1e30]})
    with pytest.raises(ArithmeticError, match=r"overflows single precision.* Its id: 6"):
        fitted(in_spark(spark, table), 1, rank=2)


@pytest.mark.slow
def test_the_frame_is_checked_before_anything_runs(star_frame):
    with pytest.raises(ValueError, match=r"userCol='who': the frame has the columns \['user', "):
        on_spark.MixedALS(userCol="who").fit(star_frame)
    with pytest.raises(TypeError, match="ratingCol='text' is of type string: it must be numeric"):
        on_spark.MixedALS(ratingCol="text").fit(star_frame.selectExpr("*", "'a' as text"))
    with pytest.raises(TypeError, match="itemCol='item' is of type decimal"):
        on_spark.MixedALS().fit(star_frame.selectExpr("user", "rating", "item * 1.0 as item"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": 0}, "rank=0: it must be an integer from 1"),
        ({"dims": [2, 2]}, "distinct"),
        ({"regParam": float("nan")}, "regParam=nan"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"metric": "auc"}, "metric='auc': it must be one of"),
        ({"dims": [2, 4], "rank": 6}, "set one of them"),
        ({"coldStartStrategy": "zero"}, "'nan' or 'drop'"),
        ({"projection": "none"}, "'learned' or 'padded'"),
        ({"checkpointInterval": 0}, "-1 or an integer from 1"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        on_spark.MixedALS(**parameters).check()


def test_parameters_have_accessors_and_typing_errors_are_told():
    estimator = on_spark.MixedALS(rank=3).setRegParam(0.5).setUserCol("who")
    assert (estimator.getRank(), estimator.getRegParam(), estimator.getUserCol()) == (3, 0.5, "who")
    assert estimator.copy({estimator.rank: 4}).getRank() == 4
    with pytest.raises(TypeError, match="no parameter 'ranks': it has"):
        on_spark.MixedALS(ranks=3)
