"""Estimators and models as folders in Spark's file systems."""

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.ml.param import Params
from pyspark.ml.util import DefaultParamsReader, MLReader, MLWriter
from pyspark.sql import DataFrame, SparkSession


class FolderWriter(MLWriter):
    """Writes parameters and facts to ``metadata``, as Spark's classes do, and frames beside it.

    The metadata come last and name the place of the frames: a folder that has them is whole. There
    are two places, and to overwrite is to write into the one not in use, so that a model which was
    loaded from a folder may be written there again.
    """

    def __init__(
        self,
        instance: Params,
        facts: Mapping[str, Any] | None = None,
        frames: Mapping[str, DataFrame] | None = None,
    ) -> None:
        super().__init__()
        self._instance = instance
        self._facts = facts or {}
        self._frames = frames or {}

    def save(self, path: str) -> None:
        """Writes to that path, which mustn't exist unless ``overwrite`` was called."""
        mode = "overwrite" if self.shouldOverwrite else "error"
        place = 1 - _place(self.sparkSession, path) if self.shouldOverwrite else 0
        for name, frame in self._frames.items():
            frame.write.mode(mode).parquet(frame_path(path, name, place))
        instance = self._instance
        text = json.dumps(
            {
                "class": f"{type(instance).__module__}.{type(instance).__name__}",
                "timestamp": round(time.time() * 1000),
                "sparkVersion": self.sparkSession.version,
                "uid": instance.uid,
                "paramMap": {p.name: v for p, v in instance._paramMap.items()},
                "defaultParamMap": {p.name: v for p, v in instance._defaultParamMap.items()},
                "place": place,
                **self._facts,
            },
            default=np.generic.item,
        )
        metadata = self.sparkSession.createDataFrame([(text,)], "value string").coalesce(1)
        metadata.write.mode(mode).text(f"{path}/metadata")


def frame_path(path: str, name: str, place: int) -> str:
    """Where a frame is, in one of the two places of a folder."""
    return f"{path}/{name}-{place}"


def _place(spark: SparkSession, path: str) -> int:
    """The place in use; the second one where there is no folder yet."""
    try:
        lines = spark.read.text(f"{path}/metadata").collect()
    except AnalysisException:
        return 1
    return int(json.loads(lines[0][0]).get("place", 1)) if lines else 1


class FolderReader(MLReader[Any]):
    """Reads what a :class:`FolderWriter` wrote into a new object of the class."""

    def __init__(self, cls: type[Any]) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        """The object in that folder."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        name = f"{self._cls.__module__}.{self._cls.__name__}"
        if metadata.get("class") != name:
            raise ValueError(f"{path} holds a {metadata.get('class')}, not a {name}")
        instance = self._cls()
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return self.completed(instance, metadata, path)

    def completed(self, instance: Any, metadata: dict[str, Any], path: str) -> Any:  # noqa: ARG002 - for classes with more
        """The object with what the folder holds besides parameters."""
        return instance
