"""Models and checkpoints on disk: what comes back, what is refused, what a kill leaves."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
import uuid
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from mixedals import (
    Interactions,
    MixedALS,
    ModelFileError,
    PopularitySizing,
    UniformSizing,
    load,
    modelfile,
    persist,
    split_at_random,
)
from mixedals.modelfile import read_file, write_file

MODELS = {
    "plain": {"dims": 5},
    "projected": {"reg": {"users": 1.0, "items": 2.0}},
    "padded": {"projection": "padded", "dims": np.array([1, 4])},
    "biases": {"biases": True, "metric": lambda *_: 0.0, "callback": lambda _: None},
    "sizes": {
        "sizing": {"users": UniformSizing(), "items": [2, 4] * 60},
        "projection_reg": 1.0,
    },
}
IDS = {
    "integers": lambda ids: ids,
    "wide": lambda ids: ids.cast(int) * 10**12,
    "strings": lambda ids: "é" + ids.cast(str),
    "bytes": lambda ids: [b"\xff" + str(i).encode() for i in ids],
    "uuids": lambda ids: [uuid.UUID(int=i) for i in ids],
}


@pytest.fixture(scope="module")
def saved(stars, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "movies.mixedals"
    MixedALS(iterations=2).fit(stars).save(path)
    return path


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_answers_as_the_saved_one(stars, tmp_path, name, ids):
    frame = stars.to_frame()
    data = Interactions.from_arrays(IDS[ids](frame["user"]), frame["item"], frame["rating"])
    model = MixedALS(iterations=2, **MODELS[name]).fit(data)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.recommend(k=3).rows() == model.recommend(k=3).rows()
    assert again.user_ids_.tolist() == model.user_ids_.tolist()
    assert again.user_ids_.dtype == model.user_ids_.dtype
    pairs = data.to_frame()
    np.testing.assert_array_equal(
        again.predict(pairs["user"], pairs["item"]), model.predict(pairs["user"], pairs["item"])
    )
    assert again.history_.equals(model.history_)
    assert again.best_iteration_ == model.best_iteration_
    assert again.n_parameters_ == model.n_parameters_
    np.testing.assert_array_equal(again.user_dims_, model.user_dims_)
    assert again.get_params()["reg"] == model.get_params()["reg"]


def test_a_loaded_model_fits_again_to_the_same(stars, saved):
    again = load(saved)
    np.testing.assert_array_equal(again.fit(stars).user_vectors_, load(saved).user_vectors_)


@given(st.data())
def test_truncated_files_are_refused(saved, tmp_path_factory, data):
    content = saved.read_bytes()
    size = data.draw(st.integers(0, len(content) - 1))
    path = tmp_path_factory.mktemp("cut") / "m"
    path.write_bytes(content[:size])
    with pytest.raises(ModelFileError):
        load(path)


@given(st.data())
def test_flipped_bits_are_refused(saved, tmp_path_factory, data):
    content = bytearray(saved.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    # Half of the flips in the header, where a reader has most to go wrong with.
    at = data.draw(st.integers(0, header - 1) | st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flip") / "m"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip",
        b"\x80\x04\x95 a pickle",
        b"\xff" * 64,
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_extra_bytes_are_refused(saved, tmp_path):
    (tmp_path / "m").write_bytes(saved.read_bytes() + b"\0" * 100)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_a_newer_version_says_to_upgrade(saved, tmp_path, monkeypatch):
    header, tensors = read_file(saved, "model")
    monkeypatch.setattr("mixedals.modelfile.VERSION", 99)
    write_file(
        tmp_path / "m", "model", {k: v for k, v in header.items() if k != "version"}, tensors
    )
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="upgrade"):
        load(tmp_path / "m")


def test_a_checkpoint_is_not_a_model(stars, tmp_path):
    MixedALS(iterations=5).fit(stars, checkpoint=tmp_path / "c")
    with pytest.raises(ModelFileError, match="holds a checkpoint"):
        load(tmp_path / "c")


def set_at(where: dict, path: tuple, value: object) -> None:
    for key in path[:-1]:
        where = where[key]
    where[path[-1]] = value


# A stranger can make the digest right: what is inside must be checked too.
HOSTILE_HEADERS = {
    "no such parameter": (("parameters", "nothing"), 1),
    "parameter out of range": (("parameters", "reg"), -1),
    "rows that aren't there": (("factors", "users", "n"), 2**40),
    "a common space that isn't": (("factors", "users", "d"), 2**40),
    "more dims than tensors": (("factors", "items", "dims"), [1, 2, 3, 4, 5, 6]),
    "tiers twice": (("factors", "items", "dims"), [2, 2, 4, 6]),
    "falling steps": (("users_rules", "steps", "limits"), [3.0, 1.0]),
    "ids of another kind": (("users_ids",), "pickle"),
    "no rules": (("users_rules",), None),
    "text for a number": (("mean_rating",), "abc"),
    "history that isn't one": (("history",), 7),
    "history of something else": (("history",), [{"a": 1}]),
    "an infinite mean": (("mean_rating",), float("inf")),
    "an infinite iteration": (("best_iteration",), float("inf")),
    "a penalty below 0": (("users_rules", "reg"), -1.0),
    "text for dims": (("factors", "items", "dims"), "246"),
    "dims that aren't whole": (("factors", "items", "dims"), [2.5, 4, 6]),
    "more threads than there can be": (("parameters", "n_threads"), 10**9),
    "no version": (("version",), None),
    "text for a version": (("version",), "one"),
    "an old version that never was": (("version",), 0),
    "text for a limit": (("users_rules", "steps", "limits"), ["a", "b"]),
    "sizes without a tier": (("users_rules", "steps", "dims"), [2, 4, 8]),
    "a mean count of 0": (("items_rules", "mean_count"), 0.0),
    "a penalty beyond single precision": (("users_rules", "reg"), 1e300),
    "a mean beyond single precision": (("mean_rating",), 1e300),
    "an iteration that was never": (("best_iteration",), 3),
    "a history that skips": (("history", 0, "iteration"), 2),
    "text in the history": (("history", 0, "seconds"), "soon"),
    "no rows": (("factors", "users", "n"), 0),
    "truth for a number": (("factors", "users", "d"), True),
}


@pytest.mark.parametrize("name", HOSTILE_HEADERS)
def test_hostile_headers_are_refused(saved, tmp_path, name):
    header, tensors = read_file(saved, "model")
    set_at(header, *HOSTILE_HEADERS[name])
    write_file(tmp_path / "m", "model", header, tensors)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_common_space_that_exhausts_memory_is_refused(stars, tmp_path):
    MixedALS(dims=2, projection="padded", iterations=1).fit(stars).save(tmp_path / "m")
    header, tensors = read_file(tmp_path / "m", "model")
    for side in ("users", "items"):
        header["factors"][side]["d"] = 2**24  # 28 GB for 420 rows
    write_file(tmp_path / "m", "model", header, tensors)
    with pytest.raises(ModelFileError, match="in the common space"):
        load(tmp_path / "m")


def test_other_tensors_are_refused(saved, tmp_path):
    header, tensors = read_file(saved, "model")
    write_file(tmp_path / "m", "model", header, tensors | {"more": np.zeros(3)})
    with pytest.raises(ModelFileError, match="that no model has"):
        load(tmp_path / "m")


def test_offsets_that_wrap_are_refused(saved, tmp_path):
    header, tensors = read_file(saved, "model")
    tensors["seen.indptr"][1:3] = 2**63 - 1, -(2**63)
    write_file(tmp_path / "m", "model", header, tensors)
    with pytest.raises(ModelFileError, match="indptr"):
        load(tmp_path / "m")


def test_saving_keeps_the_permissions(saved, tmp_path):
    model, path = load(saved), tmp_path / "m"
    mask = os.umask(0o027)
    try:
        model.save(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


HOSTILE_TENSORS = {
    "users.2.rows": lambda a: a + 10**6,
    "items.6.factors": lambda a: a[:, :5],
    "items.4.projection": lambda a: a.astype(np.float64),
    "seen.indices": lambda a: a + 1000,
    "seen.indptr": lambda a: a[::-1],
    "users.ids.ids": lambda a: a[::-1],
    "users.2.factors": lambda a: a * np.float32("nan"),
    "items.2.rows": lambda a: a[::-1],
}


@pytest.mark.parametrize("name", HOSTILE_TENSORS)
def test_hostile_tensors_are_refused(saved, tmp_path, name):
    header, tensors = read_file(saved, "model")
    tensors[name] = HOSTILE_TENSORS[name](tensors[name])
    write_file(tmp_path / "m", "model", header, tensors)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")
    del tensors[name]
    write_file(tmp_path / "m", "model", header, tensors)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


@pytest.mark.parametrize("text", ["not json", "[]", "{}", "[" * 200_000, '{"version": "1"}'])
def test_headers_that_are_not_are_refused(tmp_path, text):
    tensors = {"a": np.zeros(3)}
    metadata = {"format": "mixedals", "header": text, "sha256": modelfile._digest(text, tensors)}
    (tmp_path / "m").write_bytes(save(tensors, metadata))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_what_is_not_a_file_is_refused(saved, tmp_path):
    model = load(saved)
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(ModelFileError, match="not a file"):
            load(path)
    with pytest.raises(FileExistsError):
        model.save(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "pipe")


def test_a_link_stays_a_link(saved, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m")
    load(saved).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "m").history_.equals(load(saved).history_)


def test_numbers_of_numpy_are_numbers(stars, tmp_path):
    parameters = {
        "iterations": np.int64(2), "eval_every": np.int32(1), "n_threads": np.int64(1),
        "reg": np.float32(2), "biases": np.bool_(True), "random_state": np.int64(3),
        "metric": lambda ratings, predictions: -np.mean((ratings - predictions) ** 2),
    }  # fmt: skip
    model = MixedALS(**parameters).fit(stars, validation=stars, checkpoint=tmp_path / "c")
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").get_params()["reg"] == 2


def test_a_full_disk_leaves_the_old_file(stars, tmp_path):
    model = MixedALS(dims=4, iterations=1).fit(stars)
    model.save(tmp_path / "m")
    old = (tmp_path / "m").read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            model.save(tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "m").read_bytes() == old
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]


def command(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]


def test_a_kill_in_a_save_leaves_a_whole_file(tmp_path):
    script = """
        import sys
        from mixedals import MixedALS
        from mixedals.synthetic import generate_ratings
        data = generate_ratings(3000, 1000, 60_000)
        models = [MixedALS(dims=d, iterations=1).fit(data) for d in (8, 9)]
        models[0].save(sys.argv[1])
        print("ready", flush=True)
        while True:
            for model in models:
                model.save(sys.argv[1])
    """
    path = tmp_path / "m"
    process = subprocess.Popen(command(script, path), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for delay in np.linspace(0.01, 0.1, 6):
        time.sleep(delay)
        os.kill(process.pid, signal.SIGSTOP)
        assert load(path).user_vectors_.shape[1] in (8, 9)
        os.kill(process.pid, signal.SIGCONT)
    process.kill()
    process.wait()
    process.stdout.close()
    assert load(path).user_vectors_.shape[1] in (8, 9)


TRAINING = """
    import sys
    from mixedals import MixedALS, split_at_random
    from mixedals.synthetic import generate_ratings
    data = generate_ratings(300, 120, 6000, random_state=1).binarise()
    train, valid = split_at_random(data, (0.8, 0.2))
    path, kill_at = sys.argv[1], int(sys.argv[2])

    def callback(record):
        if record.iteration == kill_at:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)

    model = MixedALS(iterations=12, eval_every=2, projection_sampling="paper", callback=callback)
    model.fit(train, validation=valid.restrict_to(train), checkpoint=path)
    model.save(path + ".model")
"""


def test_a_killed_and_resumed_training_ends_in_the_same_bits(tmp_path):
    assert subprocess.run(command(TRAINING, tmp_path / "whole", 0), check=False).returncode == 0
    assert (
        subprocess.run(command(TRAINING, tmp_path / "cut", 7), check=False).returncode
        == -signal.SIGKILL
    )
    assert subprocess.run(command(TRAINING, tmp_path / "cut", 0), check=False).returncode == 0
    whole, cut = (read_file(tmp_path / f"{name}.model", "model") for name in ("whole", "cut"))
    assert whole[1].keys() == cut[1].keys()
    for name, tensor in whole[1].items():
        np.testing.assert_array_equal(tensor, cut[1][name])
    drop_seconds = [[row | {"seconds": 0} for row in part[0]["history"]] for part in (whole, cut)]
    assert drop_seconds[0] == drop_seconds[1]


def test_a_checkpoint_sees_its_biases_its_validation_and_its_end(stars, tmp_path):
    train, valid = split_at_random(stars, (0.8, 0.2))
    frame = valid.to_frame()
    others = Interactions.from_arrays(frame["user"] + 1, frame["item"], frame["rating"])
    known = {"metric": "rmse", "iterations": 4, "eval_every": 2}

    def fit(validation, **parameters):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MixedALS(**known | parameters)
            return model.fit(train, validation=validation, checkpoint=tmp_path / "c")

    fit(valid, global_mean=True)
    with pytest.raises(ValueError, match=r"differs in .*biases"):
        fit(valid, biases=True)
    with pytest.raises(ValueError, match=r"differs in .*validation"):
        fit(others, global_mean=True)
    with pytest.raises(ValueError, match="holds iteration 4, beyond iterations=2"):
        fit(valid, global_mean=True, iterations=2)


def test_a_full_disk_does_not_end_a_training(stars, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mixedals.checkpoint.write_file", full)
    with pytest.warns(UserWarning, match=r"iteration 2 couldn't be written .*No space left"):
        model = MixedALS(iterations=3, eval_every=2).fit(stars, checkpoint=tmp_path / "c")
    assert model.best_iteration_ == 3


def test_a_checkpoint_of_another_training_is_refused(stars, likes, tmp_path):
    path = tmp_path / "c"
    MixedALS(iterations=5).fit(stars, checkpoint=path)
    for data, parameters, name in (
        (likes, {}, "ratings"),
        (stars, {"reg": 1.0}, "penalties"),
        (stars, {"random_state": 1}, "start"),
        (stars, {"sizing": PopularitySizing(1.0)}, "sizes"),
        (stars, {"metric": "rmse"}, "metric"),
    ):
        with pytest.raises(ValueError, match=rf"differs in .*{name}"):
            MixedALS(iterations=10, **parameters).fit(data, checkpoint=path)
    with pytest.raises(ValueError, match="random_state must be an integer"):
        MixedALS(random_state=None).fit(stars, checkpoint=path)


def test_a_training_may_go_on_for_more_iterations(stars, tmp_path):
    path = tmp_path / "c"
    MixedALS(iterations=5).fit(stars, checkpoint=path)
    longer = MixedALS(iterations=8).fit(stars, checkpoint=path)
    np.testing.assert_array_equal(
        longer.user_vectors_, MixedALS(iterations=8).fit(stars).user_vectors_
    )


def test_a_damaged_checkpoint_is_refused(stars, tmp_path):
    path = tmp_path / "c"
    MixedALS(iterations=5).fit(stars, checkpoint=path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ModelFileError):
        MixedALS(iterations=8).fit(stars, checkpoint=path)
    path.write_bytes(whole)
    header, tensors = read_file(path, "checkpoint")
    write_file(path, "checkpoint", header | {"history": 7}, tensors)
    with pytest.raises(ModelFileError):
        MixedALS(iterations=8).fit(stars, checkpoint=path)


def test_every_tensor_of_a_state_comes_back(stars):
    from mixedals.trainer import TrainingState

    model = MixedALS(iterations=1, biases=True).fit(stars)._model.factors
    header, tensors = persist.state_to(TrainingState(model, model))
    again = persist.state_from(header, tensors, n_threads=1)
    np.testing.assert_array_equal(again.best.users.common, model.users.common)
