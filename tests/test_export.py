import json
import shutil
import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixedals import Interactions, MixedALS, ModelFileError
from mixedals.export import (
    build_index,
    index_recall,
    query_vectors,
    read_compact,
    write_compact,
    write_index,
    write_numpy,
    write_parquet,
)

VARIANTS = {
    "learned": {},
    "padded": {"projection": "padded"},
    "biases": {"biases": True},
    "mean": {"global_mean": True},
    "one size": {"dims": 4},
}


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS.keys())
def model(request, stars):
    settings = {"dims": (2, 4, 8), "reg": 1.0, "projection_reg": 10.0, "iterations": 6}
    return MixedALS(**settings | request.param).fit(stars)


def ids_of(kind, n):
    texts = [f"№ {number}" for number in range(n)]
    return {
        "str": np.array(texts, dtype=object),
        "bytes": np.array([text.encode() for text in texts], dtype=object),
        "uuid": np.array([uuid.UUID(int=number) for number in range(n)], dtype=object),
        "date": np.datetime64("2020-01-01") + np.arange(n),
        "bool": np.array([False, True]),
        "int32": np.arange(n, dtype=np.int32),
    }[kind]


@pytest.fixture(params=["str", "bytes", "uuid", "date", "bool", "int32"])
def with_ids(request):
    """A model whose items have ids of that type."""
    rng = np.random.default_rng(0)
    items = ids_of(request.param, 9)
    n_items = len(items)
    users, at = np.divmod(np.arange(20 * n_items), n_items)
    data = Interactions.from_arrays(users, items[at], rng.integers(1, 6, len(at)))
    return MixedALS(dims=(2, 4), iterations=2).fit(data)


def predictions(model, user_vectors, item_vectors, user_biases, item_biases):
    scores = user_vectors @ item_vectors.T
    if user_biases is not None:
        scores += user_biases[:, None]
    return scores if item_biases is None else scores + item_biases


def all_predictions(model):
    users = np.repeat(model.user_ids_, len(model.item_ids_))
    items = np.tile(model.item_ids_, len(model.user_ids_))
    return model.predict(users, items).reshape(len(model.user_ids_), -1)


def test_parquet_has_all_that_a_prediction_needs(model, tmp_path):
    write_parquet(model, tmp_path)
    sides = {}
    for side in ("user", "item"):
        frame = pl.read_parquet(tmp_path / f"{side}s.parquet")
        np.testing.assert_array_equal(frame[side], getattr(model, f"{side}_ids_"))
        assert frame.schema["vector"] == pl.Array(pl.Float32, model.user_vectors_.shape[1])
        sides[f"{side}_vectors"] = frame["vector"].to_numpy()
        sides[f"{side}_biases"] = frame["bias"].to_numpy() if "bias" in frame.columns else None
    np.testing.assert_allclose(predictions(model, **sides), all_predictions(model), atol=2e-5)


def test_numpy_has_all_that_a_prediction_needs(model, tmp_path):
    paths = write_numpy(model, tmp_path)
    arrays = {path.stem: np.load(path, allow_pickle=False, mmap_mode="r") for path in paths}
    np.testing.assert_array_equal(arrays.pop("user_ids"), model.user_ids_)
    np.testing.assert_array_equal(arrays.pop("item_ids"), model.item_ids_)
    sides = {"user_biases": None, "item_biases": None} | arrays
    np.testing.assert_allclose(predictions(model, **sides), all_predictions(model), atol=2e-5)


def test_the_compact_form_restores_the_vectors_bit_for_bit(model, tmp_path):
    paths = write_compact(model, tmp_path)
    assert paths[-1].name == "compact.json"
    restored = read_compact(tmp_path)
    np.testing.assert_array_equal(restored.user_ids, model.user_ids_)
    np.testing.assert_array_equal(restored.item_ids, model.item_ids_)
    np.testing.assert_array_equal(restored.user_vectors, model.user_vectors_)
    np.testing.assert_array_equal(restored.item_vectors, model.item_vectors_)
    sides = [getattr(restored, name) for name in
             ("user_vectors", "item_vectors", "user_biases", "item_biases")]  # fmt: skip
    np.testing.assert_allclose(predictions(model, *sides), all_predictions(model), atol=2e-5)


def test_the_compact_form_has_as_many_numbers_as_the_model_learned(model, tmp_path):
    write_compact(model, tmp_path)
    rows = [pl.read_parquet(tmp_path / f"{side}s.parquet") for side in ("user", "item")]
    learned = pl.read_parquet(tmp_path / "projections.parquet").filter("learned")
    n = sum(frame["embedding"].list.len().sum() for frame in rows)
    n += learned["projection"].list.len().sum()
    if model.biases:
        n += sum(len(frame) for frame in rows)
    assert n == model.n_parameters_


def test_ids_of_every_type_come_back(with_ids, tmp_path):
    write_compact(with_ids, tmp_path)
    restored = read_compact(tmp_path).item_ids
    assert restored.dtype == with_ids.item_ids_.dtype
    assert restored.tolist() == with_ids.item_ids_.tolist()
    write_numpy(with_ids, tmp_path)
    ids = np.load(tmp_path / "item_ids.npy", allow_pickle=False)
    assert ids.tolist() == [
        str(i) if isinstance(i, uuid.UUID) else i for i in with_ids.item_ids_.tolist()
    ]
    write_parquet(with_ids, tmp_path)
    assert pl.read_parquet(tmp_path / "items.parquet")["item"].n_unique() == len(restored)
    write_index(with_ids, tmp_path)
    assert pl.read_parquet(tmp_path / "items.parquet")["key"].to_list() == [*range(len(restored))]


# The index.


def test_the_index_finds_what_an_exact_search_finds(model):
    index = build_index(model)
    index.expansion_search = 256
    scores = query_vectors(model) @ (
        model.item_vectors_
        if model.item_biases_ is None
        else np.column_stack([model.item_vectors_, model.item_biases_])
    ).T  # fmt: skip
    exact = np.argsort(-scores, axis=1)[:, :10]
    found = index.search(query_vectors(model), 10).keys.astype(int)
    shares = [len({*a} & {*b}) / 10 for a, b in zip(exact.tolist(), found.tolist(), strict=True)]
    assert np.mean(shares) > 0.99
    assert index_recall(index, model, n_users=10**6) == pytest.approx(np.mean(shares), abs=0.005)


def test_a_poor_index_has_a_poor_recall(model):
    index = build_index(model)
    for key in range(0, len(model.item_ids_), 2):  # half of what is there to find
        index.remove(key)
    assert index_recall(index, model, n_users=100) < 0.8


def test_the_index_of_the_files_answers_alone(model, tmp_path):
    from usearch.index import Index

    recall = write_index(model, tmp_path, k=5)
    assert list(recall) == [64, 256]
    assert recall[256] > 0.99
    index = Index.restore(tmp_path / "items.usearch")
    index.expansion_search = 256
    users = pl.read_parquet(tmp_path / "users.parquet")
    items = pl.read_parquet(tmp_path / "items.parquet")["item"].to_numpy()
    keys = index.search(users["vector"][7].to_numpy(), 5).keys
    expected = model.recommend([users["user"][7]], k=5, exclude_seen=False)
    assert items[keys.astype(int)].tolist() == expected["item"].to_list()


# Crafted and broken compact files.


@pytest.fixture(scope="module")
def compact(stars, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    write_compact(MixedALS(dims=(2, 4), iterations=2).fit(stars), folder)
    return folder


@pytest.fixture
def copy(compact, tmp_path):
    return shutil.copytree(compact, tmp_path / "copy")


def change(path, **columns):
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)


def about(folder, **values):
    path = folder / "compact.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


CRAFTED = {
    "a newer version": lambda f: about(f, version=2),
    "no version": lambda f: (f / "compact.json").write_text("{}"),
    "no object": lambda f: (f / "compact.json").write_text("[1]"),
    "version of another type": lambda f: about(f, version="one"),
    "not JSON": lambda f: (f / "compact.json").write_text("{"),
    "not even text": lambda f: (f / "compact.json").write_bytes(b"\xff\xfe"),
    "deep JSON": lambda f: (f / "compact.json").write_text("[" * 100_000),
    "a huge d": lambda f: about(f, d=2**40),
    "a negative d": lambda f: about(f, d=-4),
    "d that is text": lambda f: about(f, d="four"),
    "a smaller d": lambda f: about(f, d=3),
    "ids of no known kind": lambda f: about(f, user_ids="pickle"),
    "ids of another kind": lambda f: about(f, user_ids="date"),
    "UUIDs that are none": lambda f: about(f, user_ids="uuid"),
    "not Parquet": lambda f: (f / "users.parquet").write_bytes(b"PAR1 not"),
    "no embeddings": lambda f: pl.DataFrame({"user": [1]}).write_parquet(f / "users.parquet"),
    "embeddings of text": lambda f: change(f / "users.parquet", embedding=pl.lit("x")),
    "a missing embedding": lambda f: change(
        f / "users.parquet", embedding=pl.when(pl.col("user") > 9).then(pl.col("embedding"))
    ),
    "an empty embedding": lambda f: change(
        f / "users.parquet", embedding=pl.col("embedding").list.head(pl.col("user") % 3)
    ),
    "embeddings that aren't finite": lambda f: change(
        f / "users.parquet", embedding=pl.col("embedding").list.eval(pl.element() / 0)
    ),
    "missing numbers": lambda f: change(
        f / "users.parquet", embedding=pl.col("embedding").list.eval(pl.lit(None))
    ),
    "no projections": lambda f: (
        pl.read_parquet(f / "projections.parquet").clear().write_parquet(f / "projections.parquet")
    ),
    "projections of another shape": lambda f: change(
        f / "projections.parquet", projection=pl.col("projection").list.head(3)
    ),
    "projections of no numbers": lambda f: change(
        f / "projections.parquet", projection=pl.lit(None, pl.List(pl.Float32))
    ),
    "a negative size": lambda f: change(f / "projections.parquet", p=-pl.col("p")),
    "a missing size": lambda f: change(f / "projections.parquet", p=pl.lit(None, pl.Int32)),
    "ids twice": lambda f: change(f / "users.parquet", user=pl.col("user") * 0),
    "missing ids": lambda f: change(
        f / "users.parquet", user=pl.when(pl.col("user") > 9).then(pl.col("user"))
    ),
    "biases of text": lambda f: change(f / "users.parquet", bias=pl.lit("x")),
    "missing biases": lambda f: change(f / "users.parquet", bias=pl.lit(None, pl.Float32)),
}


@pytest.mark.parametrize("craft", CRAFTED.values(), ids=CRAFTED.keys())
def test_a_crafted_compact_form_is_refused(copy, craft):
    craft(copy)
    with pytest.raises(ModelFileError):
        read_compact(copy)


@pytest.mark.parametrize("name", ["compact.json", "users.parquet", "projections.parquet"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_compact(copy)


@given(st.sampled_from(["compact.json", "users.parquet", "projections.parquet"]), st.data())
def test_broken_bytes_are_an_error_or_no_harm(compact, tmp_path_factory, name, data):
    folder = tmp_path_factory.mktemp("broken")
    for path in compact.iterdir():
        shutil.copy(path, folder)
    raw = bytearray((folder / name).read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=5)):
        raw[at] = data.draw(st.integers(0, 255))
    (folder / name).write_bytes(raw)
    try:
        read_compact(folder)
    except ModelFileError:
        pass
    finally:
        shutil.rmtree(folder)
