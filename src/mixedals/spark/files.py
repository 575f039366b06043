"""Estimators and models as folders in Spark's file systems."""

import json
import time
from collections.abc import Mapping
from typing import Any

from pyspark.ml.param import Params
from pyspark.ml.util import DefaultParamsReader, MLReader, MLWriter
from pyspark.sql import DataFrame


class FolderWriter(MLWriter):
    """Writes parameters and facts to ``metadata``, as Spark's classes do, and frames beside it.

    The metadata come last: a folder that has them is whole.
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
        for name, frame in self._frames.items():
            frame.write.mode(mode).parquet(f"{path}/{name}")
        instance = self._instance
        text = json.dumps(
            {
                "class": f"{type(instance).__module__}.{type(instance).__name__}",
                "timestamp": round(time.time() * 1000),
                "sparkVersion": self.sparkSession.version,
                "uid": instance.uid,
                "paramMap": {p.name: v for p, v in instance._paramMap.items()},
                "defaultParamMap": {p.name: v for p, v in instance._defaultParamMap.items()},
                **self._facts,
            }
        )
        metadata = self.sparkSession.createDataFrame([(text,)], "value string").coalesce(1)
        metadata.write.mode(mode).text(f"{path}/metadata")


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
