"""Fits on Spark with two local workers, whose tasks may fail three times."""

import os
from itertools import pairwise

import numpy as np
import pytest
import relvec
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import (
    BinaryClassificationEvaluator,
    MulticlassClassificationEvaluator,
    RegressionEvaluator,
)
from pyspark.ml.feature import StandardScaler, VectorAssembler
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from relvec import _partitions
from relvec.spark import (
    RelevanceVectorClassificationModel,
    RelevanceVectorClassifier,
    RelevanceVectorRegressionModel,
    RelevanceVectorRegressor,
)
from rows import FATAL, FEATURES, OTHERS, SAMPLE, assert_same, deadly, frame, held, parts

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "FATAL",
}


@pytest.fixture(scope="module")
def session():
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table():
    return frame()


def spread(session, own):
    """A frame of Spark with the partitions that are given."""
    schema = session.createDataFrame(own[0]).schema
    rows = [list(part.itertuples(index=False, name=None)) for part in own]
    spread = session.sparkContext.parallelize(range(len(own)), len(own)).flatMap(lambda k: rows[k])
    return session.createDataFrame(spread, schema).cache()


@pytest.fixture(scope="module")
def lazy(session, table):
    lazy = spread(session, parts(table))
    sizes = lazy.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert sizes == [len(part) for part in parts(table)]
    return lazy


@pytest.fixture(scope="module")
def regression(lazy):
    return RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y", weightCol="w", stdCol="std", sample=SAMPLE).fit(
        lazy
    )


@pytest.fixture(scope="module")
def classification(lazy):
    return RelevanceVectorClassifier(featuresCol=FEATURES, labelCol="k", sample=SAMPLE).fit(lazy)


def test_regression_equals_that_of_one_process(table, regression):
    local = regression.to_local()
    assert type(local) is relvec.RVR
    assert_same(local, held(relvec.RVR(), parts(table), "y", "w"))
    assert list(local.feature_names_in_) == FEATURES


def test_classes_equal_those_of_one_process(table, classification):
    local = classification.to_local()
    assert list(local.classes_) == ["down", "middle", "up"]
    own = held(relvec.RVC(), parts(table), "k")
    np.testing.assert_array_equal(local.predict_proba(table[FEATURES]), own.predict_proba(table[FEATURES]))


@pytest.mark.parametrize(("settings", "label", "further"), OTHERS)
def test_counts_outliers_and_known_noise_equal_those_of_one_process(table, lazy, settings, label, further):
    columns = {"noise_variance": "noiseVarianceCol", "exposure": "exposureCol"}
    own = {columns[name]: column for name, column in further.items()}
    model = RelevanceVectorRegressor(featuresCol=FEATURES, labelCol=label, sample=SAMPLE, **settings, **own).fit(lazy)
    assert_same(model.to_local(), held(relvec.RVR(**settings), parts(table), label, **further))


def test_predictions_come_as_columns(table, lazy, regression, classification):
    out = classification.transform(regression.transform(lazy).drop("prediction")).toPandas()
    np.testing.assert_array_equal(out[FEATURES].to_numpy(), table[FEATURES].to_numpy())
    std = regression.to_local().predict(table[FEATURES], return_std=True)[1]
    np.testing.assert_allclose(out["std"], std, rtol=1e-12)
    proba = classification.to_local().predict_proba(table[FEATURES])
    np.testing.assert_allclose(np.stack([row.toArray() for row in out["probability"]]), proba, rtol=1e-12)
    assert list(out["prediction"]) == list(classification.to_local().predict(table[FEATURES]))


def test_features_are_vectors_arrays_or_names(lazy, regression):
    vectors = VectorAssembler(inputCols=FEATURES, outputCol="features").transform(lazy)
    arrays = lazy.withColumn("features", F.array(*FEATURES))
    for own in (vectors, arrays):
        model = RelevanceVectorRegressor(labelCol="y", weightCol="w", sample=SAMPLE).fit(own)
        assert_same(model.to_local(), regression.to_local())
        assert "prediction" in model.transform(own).columns
    with pytest.raises(TypeError, match="the feature k is of the type string: expected numbers"):
        RelevanceVectorRegressor(featuresCol=["a", "k"], labelCol="y").fit(lazy)


def test_models_write_what_load_reads(tmp_path, table, lazy, regression, classification):
    for name, model, cls in [
        ("r", regression, RelevanceVectorRegressionModel),
        ("c", classification, RelevanceVectorClassificationModel),
    ]:
        folder = str(tmp_path / name)
        model.write().overwrite().save(folder)
        plain = relvec.load(os.path.join(folder, "model", "part-00000"))
        expected = model.to_local().predict(table[FEATURES])
        np.testing.assert_array_equal(plain.predict(table[FEATURES]), expected)
        back = cls.load(folder)
        assert back.uid == model.uid
        assert back.extractParamMap().values() is not None
        assert {p.name: v for p, v in back.extractParamMap().items()} == {
            p.name: v for p, v in model.extractParamMap().items()
        }
        assert list(back.transform(lazy).toPandas()["prediction"]) == list(expected)


def test_a_pipeline_fits_predicts_and_is_saved(tmp_path, lazy):
    assemble = VectorAssembler(inputCols=FEATURES, outputCol="raw")
    scale = StandardScaler(inputCol="raw", outputCol="features")
    pipeline = Pipeline(stages=[assemble, scale, RelevanceVectorRegressor(labelCol="y", gamma=0.2)])
    pipeline.write().overwrite().save(str(tmp_path / "unfitted"))
    assert Pipeline.load(str(tmp_path / "unfitted")).getStages()[2].getOrDefault("gamma") == 0.2
    fitted = pipeline.fit(lazy)
    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    out, again = (m.transform(lazy).toPandas() for m in (fitted, PipelineModel.load(str(tmp_path / "fitted"))))
    assert np.mean((out["prediction"] - out["y"]) ** 2) < 0.1
    np.testing.assert_array_equal(out["prediction"], again["prediction"])


def test_a_cross_validator_chooses_a_parameter(tmp_path, lazy):
    estimator = RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y")
    grid = ParamGridBuilder().addGrid(estimator.gamma, [1e-4, 0.3]).build()
    search = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, evaluator=RegressionEvaluator(labelCol="y"), numFolds=2
    )
    fitted = search.fit(lazy)
    assert fitted.bestModel.to_local().gamma == 0.3
    fitted.write().overwrite().save(str(tmp_path / "search"))
    best = CrossValidatorModel.load(str(tmp_path / "search")).bestModel
    assert best.to_local().log_evidence_ == fitted.bestModel.to_local().log_evidence_


def test_evaluators_of_spark_read_the_columns(lazy):
    out = RelevanceVectorClassifier(featuresCol=FEATURES, labelCol="n").fit(lazy).transform(lazy)
    loss = MulticlassClassificationEvaluator(labelCol="n", metricName="logLoss").evaluate(out)
    area = BinaryClassificationEvaluator(labelCol="n", rawPredictionCol="probability").evaluate(out)
    assert loss < 0.4
    assert area > 0.9


def test_classes_that_are_true_or_false_come_back_as_such(lazy):
    truth = lazy.withColumn("n", F.col("n") > 0.5)
    out = RelevanceVectorClassifier(featuresCol=FEATURES, labelCol="n").fit(truth).transform(truth).toPandas()
    assert out["prediction"].dtype == bool
    assert np.mean(out["prediction"] == out["n"]) > 0.85


def test_a_killed_worker_changes_no_bit(tmp_path, monkeypatch, lazy, regression):
    once, mark = deadly(str(tmp_path))
    monkeypatch.setattr(_partitions, "answer", once)
    model = RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y", weightCol="w", sample=SAMPLE).fit(lazy)
    assert os.path.exists(mark)
    assert_same(model.to_local(), regression.to_local())


def test_a_bad_cell_is_named_by_partition_and_row(session, table):
    own = parts(table)
    bad = np.arange(len(own[FATAL])) == 7
    own[FATAL] = own[FATAL].assign(b=own[FATAL]["b"].mask(bad), k=own[FATAL]["k"].astype(object).where(~bad, None))
    lazy = spread(session, own)
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: X\[7, 1\] = nan: every value must be a finite number"):
        RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y").fit(lazy)
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: y\[7\] = .*every row must have a class"):
        RelevanceVectorClassifier(featuresCol=FEATURES, labelCol="k").fit(lazy)
    arrays = lazy.withColumn(
        "features", F.when(F.col("b").isNull() | F.isnan("b"), F.array("a")).otherwise(F.array(*FEATURES))
    )
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: row 7 has 1 features, and the first row has 3"):
        RelevanceVectorRegressor(labelCol="y").fit(arrays)


def test_many_partitions_are_merged_in_one_tree(table, session):
    lazy = session.createDataFrame(table).repartitionByRange(40, "a").cache()
    sizes = lazy.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    ordered, cuts = lazy.toPandas(), np.cumsum([0, *sizes])
    own = [ordered[a:b] for a, b in pairwise(cuts)]
    model = RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y", sample=SAMPLE).fit(lazy)
    assert_same(model.to_local(), held(relvec.RVR(), own, "y"))


def test_unknown_parameters_are_rejected():
    with pytest.raises(AttributeError, match="gama"):
        RelevanceVectorRegressor(gama=0.1)
