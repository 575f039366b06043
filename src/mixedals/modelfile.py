"""Files of models and checkpoints: safetensors with a JSON header, whole or not at all.

The header and every tensor are under one SHA-256 digest, so a file is either what was written or
a :class:`ModelFileError`. Nothing in a file is ever run.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mixedals._atomic import replacing

VERSION = 1
_FORMAT = "mixedals"

Tensors = Mapping[str, NDArray[Any]]
Header = Mapping[str, Any]


class ModelFileError(ValueError):
    """The file isn't a whole model file of a version that this library reads.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mixedals import load
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.txt"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError as error:
    ...     print("not a whole mixedals file" in str(error))
    True
    """


@contextlib.contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong in here while contents are made sense of is the file's fault."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (
        ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
        ValueError, SafetensorError, pl.exceptions.PolarsError,
    ) as error:  # fmt: skip
        raise ModelFileError(f"{path}: not a whole mixedals file ({error!r})") from error


def write_file(path: str | os.PathLike[str], kind: str, header: Header, tensors: Tensors) -> None:
    """Writes a file to ``path``, where what was before stays until all of it is written.

    Parameters
    ----------
    kind
        What the file holds, ``model`` or ``checkpoint``.
    header
        Anything JSON can hold.
    tensors
        Arrays by name.
    """
    text = json.dumps({"version": VERSION, "kind": kind, **header}, default=np.generic.item)
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    data = save(tensors, {"format": _FORMAT, "header": text, "sha256": _digest(text, tensors)})
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_file(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and tensors of a file of that kind. Raises ModelFileError for any other file."""
    if Path(path).exists() and not Path(path).is_file():
        raise ModelFileError(f"{path}: not a file")
    with understood(path):
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise ModelFileError("not a mixedals file")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        text = metadata.get("header", "")
        if metadata.get("sha256") != _digest(text, tensors):
            raise ModelFileError("the file is damaged: its contents don't match its digest")
        header = json.loads(text)
        if header["version"] != VERSION:
            raise ModelFileError(
                f"written by another mixedals (file version {header['version']!r}; this one reads "
                f"{VERSION}): upgrade mixedals"
            )
        if header["kind"] != kind:
            raise ModelFileError(f"holds a {header['kind']}, not a {kind}")
    return cast("dict[str, Any]", header), tensors


def _digest(header: str, tensors: Tensors) -> str:
    digest = hashlib.sha256(header.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\0{name}\0{tensor.dtype}\0{tensor.shape}\0".encode())
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
