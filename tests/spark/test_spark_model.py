"""What a model on Spark answers, where it is kept, and what it goes with."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from spark_cases import assert_same_model, in_spark

from mixedals import MixedALS
from mixedals import spark as on_spark

pytestmark = pytest.mark.slow

PARAMETERS = {
    "dims": [2, 4], "projectionReg": 10.0, "maxIter": 2, "numUserBlocks": 2, "numItemBlocks": 2
}  # fmt: skip


@pytest.fixture(scope="module")
def model(star_frame):
    return on_spark.MixedALS(**PARAMETERS).fit(star_frame)


@pytest.fixture(scope="module")
def alone(model):
    return model.toLocal()


def test_predictions(spark, model, alone, stars):
    pairs = stars.to_frame().select("user", "item")[:50]
    found = pl.from_arrow(model.transform(in_spark(spark, pairs)).toArrow())
    assert found.columns == ["user", "item", "prediction"]
    found = found.sort("user", "item")
    expected = alone.predict(found["user"], found["item"])
    np.testing.assert_array_equal(found["prediction"], expected)


def test_pairs_that_the_model_does_not_know(spark, model):
    pairs = in_spark(spark, pl.DataFrame({"user": [1, 1, -9], "item": [2, -9, 2]}))
    found = [row.prediction for row in model.transform(pairs).orderBy("user", "item").collect()]
    assert [np.isnan(value) for value in found] == [True, True, False]
    dropped = model.transform(pairs, {model.coldStartStrategy: "drop"}).collect()
    assert [(row.user, row.item) for row in dropped] == [(1, 2)]


def test_ids_of_another_type_are_refused(spark, model):
    pairs = in_spark(spark, pl.DataFrame({"user": ["1"], "item": [2]}))
    with pytest.raises(TypeError, match="'user' is of type string, but the model's ids are of"):
        model.transform(pairs)
    narrow = in_spark(spark, pl.DataFrame({"user": [1], "item": [2]}, schema={
        "user": pl.Int16, "item": pl.Int32
    }))  # fmt: skip
    assert not np.isnan(model.transform(narrow).first().prediction)


@pytest.mark.parametrize("chunk_rows", [4096, 25])
def test_recommendations(model, alone, chunk_rows):
    model = model.copy({model.blockSize: chunk_rows})
    found = {row.user: row.recommendations for row in model.recommendForAllUsers(7).collect()}
    expected = alone.recommend(k=7, exclude_seen=False)
    assert sorted(found) == alone.user_ids_.tolist()
    for (user,), rows in expected.group_by(["user"], maintain_order=True):
        assert [row.item for row in found[user]] == rows["item"].to_list()
        np.testing.assert_array_equal([row.rating for row in found[user]], rows["score"])


def test_recommendations_for_some(spark, model, alone):
    some = in_spark(spark, pl.DataFrame({"user": [3, 1, 3, -9], "item": [1, 2, 3, 4]}))
    found = {
        row.user: row.recommendations for row in model.recommendForUserSubset(some, 3).collect()
    }
    assert sorted(found) == [1, 3]
    expected = alone.recommend([3], k=3, exclude_seen=False)["item"].to_list()
    assert [row.item for row in found[3]] == expected
    items = model.recommendForItemSubset(some, 400).collect()
    assert {len(row.recommendations) for row in items} == {len(alone.user_ids_)}
    assert len(model.recommendForAllItems(2).collect()) == len(alone.item_ids_)
    with pytest.raises(ValueError, match="0 recommendations"):
        model.recommendForAllUsers(0)


def test_factors_and_embeddings(model, alone):
    common = pl.from_arrow(model.userFactors.toArrow()).sort("id")
    np.testing.assert_array_equal(np.stack(common["features"].to_list()), alone.user_vectors_)
    compact = pl.from_arrow(model.itemEmbeddings.toArrow()).sort("id")
    np.testing.assert_array_equal(compact["features"].list.len(), alone.item_dims_)
    assert {p: a.shape for p, a in model.itemProjections.items()} == {2: (4, 2)}


def test_a_model_is_written_and_read(spark, model, alone, tmp_path):
    path = str(tmp_path / "model")
    model.save(path)
    again = on_spark.MixedALSModel.load(path)
    assert again.uid == model.uid
    assert again.getUserCol() == "user"
    assert again.history.equals(model.history)
    assert_same_model(again.toLocal(), alone)
    with pytest.raises(Exception, match=r"(?i)already.exists"):
        model.save(path)
    for _ in range(3):  # what is loaded is read from the folder that is written to
        again.write().overwrite().save(path)
        again = on_spark.MixedALSModel.load(path)
    assert_same_model(again.toLocal(), alone)
    assert {file.name for file in (tmp_path / "model").iterdir()} == {
        "metadata", "users-0", "users-1", "items-0", "items-1",
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"holds a mixedals.spark.model.MixedALSModel, not a"):
        on_spark.MixedALS.load(path)


def test_an_estimator_is_written_and_read(spark, tmp_path):
    path = str(tmp_path / "estimator")
    on_spark.MixedALS(dims=[2, 4], regParam=0.5).save(path)
    again = on_spark.MixedALS.load(path)
    assert (again.getDims(), again.getRegParam(), again.isSet("rank")) == ([2, 4], 0.5, False)


def test_models_go_to_one_machine_and_back(spark, model, alone, stars, tmp_path):
    alone.save(tmp_path / "alone.mixedals")
    back = on_spark.MixedALSModel.fromLocal(alone, spark)
    assert_same_model(back.toLocal(), alone)
    assert back.toLocal().history_.equals(alone.history_)
    seen = in_spark(spark, stars.to_frame().select("user", "item"))
    assert (
        model.toLocal(seen).recommend([3], k=5)["item"].to_list()
        == MixedALS.recommend(_refitted(alone, stars), [3], k=5)["item"].to_list()
    )
    biased = MixedALS(biases=True, iterations=1).fit(stars)
    with pytest.raises(ValueError, match="biases or a global mean"):
        on_spark.MixedALSModel.fromLocal(biased, spark)


def _refitted(alone, stars):
    """The model with every user folded in anew: as it ends on users, their vectors stay."""
    return alone.fold_in_users(stars, dims=alone.user_dims_)


def test_in_a_pipeline(star_frame, model, tmp_path):
    shifted = SQLTransformer(statement="SELECT *, rating - 3 AS centred FROM __THIS__")
    stages = [shifted, on_spark.MixedALS(ratingCol="centred", **PARAMETERS)]
    fitted = Pipeline(stages=stages).fit(star_frame)
    fitted.write().overwrite().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    rows = star_frame.limit(5)
    assert again.transform(rows).collect() == fitted.transform(rows).collect()


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool")  # PySpark's
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_in_cross_validation(star_frame):
    estimator = on_spark.MixedALS(**PARAMETERS, coldStartStrategy="drop")
    grid = ParamGridBuilder().addGrid(estimator.regParam, [3.0, 3000.0]).build()
    search = CrossValidator(
        estimator=estimator,
        estimatorParamMaps=grid,
        evaluator=RegressionEvaluator(labelCol="rating"),
        numFolds=2,
        seed=1,
    )
    found = search.fit(star_frame)
    assert found.avgMetrics[0] < found.avgMetrics[1]
    assert found.bestModel.toLocal().reg == 3.0
