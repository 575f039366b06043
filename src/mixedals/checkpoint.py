"""Training states on disk, so that a training that was stopped goes on where it was."""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._atomic import check_writable
from mixedals.interactions import Interactions
from mixedals.modelfile import read_file, understood, write_file
from mixedals.persist import state_from, state_to
from mixedals.tiers import Factorisation
from mixedals.trainer import Problem, TrainingState


class Checkpoint:
    """A file with a training's state, and with what identifies the training.

    Parameters
    ----------
    path
        Where the file is, or will be.
    every
        Iterations between writes.
    identity
        What must agree for a training to go on from the file.
    """

    def __init__(self, path: Path, every: int, identity: dict[str, Any]) -> None:
        check_writable(path)
        self._path = path
        self._every = every
        self._identity = identity

    def read(self, n_threads: int) -> TrainingState[Factorisation] | None:
        """The state that the file holds, None where there is no file."""
        if not self._path.exists():
            return None
        header, tensors = read_file(self._path, "checkpoint")
        with understood(self._path):
            there = header["identity"]
            differ = [name for name, value in self._identity.items() if there.get(name) != value]
            state = state_from(header, tensors, n_threads) if not differ else None
        if state is None:
            raise ValueError(
                f"{self._path} is the checkpoint of another training, which differs in "
                f"{', '.join(differ)}: give another path, or remove the file to start anew"
            )
        return state

    def write(self, state: TrainingState[Factorisation]) -> None:
        """Writes the state, where it is due. A training doesn't end because a disk is full."""
        if state.iteration % self._every == 0:
            header, tensors = state_to(state)
            header = {"identity": self._identity, **header}
            try:
                write_file(self._path, "checkpoint", header, tensors)
            except OSError as error:
                warnings.warn(
                    f"the checkpoint of iteration {state.iteration} couldn't be written ({error}); "
                    "training goes on",
                    stacklevel=2,
                )


def identity_of(
    problem: Problem,
    start: TrainingState[Factorisation],
    validation: Interactions | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """What a training depends on, small enough for a header: digests of arrays, and settings."""
    ratings = problem.by_user
    return {
        "ratings": digest(ratings.indptr, ratings.indices, ratings.values, ratings.weights),
        "ids": digest(problem.user_keys, problem.item_keys),
        "penalties": digest(problem.user_ridge, problem.item_ridge)
        + f" {problem.user_beta!r} {problem.item_beta!r}",
        "sizes": digest(start.model.users.dims, start.model.items.dims),
        "start": digest(start.model.users.common, start.model.items.common),
        "validation": None if validation is None else _digest_of(validation),
        "projection_sampling": problem.sampled,
        "mean": start.model.mean,
        "biases": start.model.users.biases is not None,
        "instruction-set level": kernels.LEVEL,
        **settings,
    }


def _digest_of(data: Interactions) -> str:
    ratings = data.by_user
    ids = data.user_vocabulary.keys(), data.item_vocabulary.keys()
    return digest(*ids, ratings.indptr, ratings.indices, ratings.values)


def digest(*arrays: NDArray[Any] | None) -> str:
    """A digest of the arrays' bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def digest_of(data: Interactions) -> str:
    """A digest of ratings: their ids, values, weights and timestamps."""
    keys = data.user_vocabulary.keys(), data.item_vocabulary.keys()
    ratings = data.by_user
    return digest(
        ratings.indptr, ratings.indices, ratings.values, ratings.weights, data.timestamps, *keys
    )
