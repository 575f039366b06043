"""Data sets in their original layouts, whole and broken."""

import io
import os
import tarfile
import zipfile

import polars as pl
import pytest

from mixedals import Interactions
from mixedals.datasets import DATASETS, convert, read

RATINGS = [(1, 10, 5.0, 100), (1, 20, 3.0, 90), (2, 10, 1.0, 80), (7, 30, 4.0, 70)]
TITLES = [(10, "Amélie"), (20, "Persuasion"), (30, "Toy Story, The (1995)")]


def lines(separator, rating="{:.0f}"):
    return "".join(
        separator.join((str(u), str(i), rating.format(r), str(t))) + "\n" for u, i, r, t in RATINGS
    )


def movielens(name):
    """Names and contents of the files of a set in its original layout."""
    if name == "ml-100k":
        items = "".join(f"{i}|{title}|01-Jan-1995||0|1\n" for i, title in TITLES)
        return {"u.data": lines("\t").encode(), "u.item": items.encode("latin-1"), "u1.base": b"?"}
    if name in ("ml-1m", "ml-10m"):
        items = "".join(f"{i}::{title}::Drama|Comedy\n" for i, title in TITLES)
        encoding = "latin-1" if name == "ml-1m" else "utf-8"
        rating = "{:.0f}" if name == "ml-1m" else "{:g}"
        return {
            "ratings.dat": lines("::", rating).encode(),
            "movies.dat": items.encode(encoding),
            "README": b"::",
        }
    items = "".join(f'{i},"{title}",Drama\n' for i, title in TITLES)
    return {
        "ratings.csv": ("userId,movieId,rating,timestamp\n" + lines(",", "{:.1f}")).encode(),
        "movies.csv": ("movieId,title,genres\n" + items).encode(),
        "tags.csv": b"userId,movieId,tag,timestamp\n",
    }


def netflix():
    """One file a movie, and titles."""
    files = {}
    for movie in (10, 20, 30):
        rows = [f"{u},{r:.0f},2005-01-{t % 28 + 1:02}\n" for u, i, r, t in RATINGS if i == movie]
        files[f"training_set/mv_{movie:07}.txt"] = f"{movie}:\n{''.join(rows)}".encode()
    titles = "".join(f"{i},1999,{title}\n" for i, title in TITLES)
    return files | {"movie_titles.txt": titles.encode("latin-1")}


def as_folder(files, path):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def as_zip(files, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"set/{name}", content)
    return path


def as_tar(files, path, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def assert_read(got, titles=TITLES, *, dates=False):
    rows = got.interactions.to_frame()
    assert rows.select("user", "item", "rating").rows() == sorted(r[:3] for r in RATINGS)
    if not dates:
        assert sorted(rows["timestamp"]) == sorted(r[3] for r in RATINGS)
    assert got.titles.rows() == titles


MOVIELENS = [name for name in DATASETS if name.startswith("ml-")]


@pytest.mark.parametrize("name", MOVIELENS)
@pytest.mark.parametrize("pack", [as_folder, as_zip])
def test_movielens_as_folder_and_as_zip(name, pack, tmp_path):
    path = tmp_path / ("set" if pack is as_folder else "set.zip")
    assert_read(read(name, pack(movielens(name), path)))


def test_netflix_as_folder_as_tar_gz_with_a_tar_inside_and_as_kaggles_files(tmp_path):
    files = netflix()
    assert_read(read("netflix", as_folder(files, tmp_path / "folder")), dates=True)
    titles = files.pop("movie_titles.txt")
    inner = as_tar(files, tmp_path / "training_set.tar")
    outer = {"download/training_set.tar": inner.read_bytes(), "download/movie_titles.txt": titles}
    packed = as_tar(outer, tmp_path / "nf_prize_dataset.tar.gz", "w:gz")
    assert_read(read("netflix", packed), dates=True)
    contents = list(files.values())
    kaggle = {
        "combined_data_1.txt": contents[0] + contents[1],
        "combined_data_2.txt": contents[2],
        "movie_titles.csv": titles,
    }
    assert_read(read("netflix", as_folder(kaggle, tmp_path / "kaggle")), dates=True)
    assert_read(read("netflix", as_zip(kaggle, tmp_path / "kaggle.zip")), dates=True)


def test_a_unpacked_archive_with_the_tar_still_packed_is_a_folder_too(tmp_path):
    files = netflix()
    titles = files.pop("movie_titles.txt")
    as_tar(files, tmp_path / "training_set.tar")
    (tmp_path / "movie_titles.txt").write_bytes(titles)
    assert_read(read("netflix", tmp_path), dates=True)


@pytest.mark.parametrize("size", [1, 7, 16, 40])
def test_blocks_of_any_size_give_the_same_ratings(size, tmp_path, monkeypatch):
    monkeypatch.setattr("mixedals.datasets.text.BLOCK", size)
    monkeypatch.setattr("mixedals.datasets.netflix.BLOCK", size)
    for name, files in (("ml-1m", movielens("ml-1m")), ("ml-25m", movielens("ml-25m"))):
        assert_read(read(name, as_folder(files, tmp_path / name)))
    kaggle = {"combined_data_1.txt": b"".join(list(netflix().values())[:3])}
    got = read("netflix", as_folder(kaggle, tmp_path / "netflix"))
    assert got.titles is None
    assert len(got.interactions) == len(RATINGS)


@pytest.mark.parametrize("ending", ["\r\n", "\n", "mixed"])
def test_lines_may_end_in_any_way(ending, tmp_path):
    for name, files in (("ml-100k", movielens("ml-100k")), ("netflix", netflix())):
        for file, content in files.items():
            new = content.replace(b"\n", b"\r\n" if ending != "\n" else b"\n")
            if ending == "mixed":
                new = new.replace(b"\r\n", b"\n", 1) + b"\n\r\n"
            files[file] = new
        assert_read(read(name, as_folder(files, tmp_path / name)), dates=name == "netflix")


def broken(name, file, old, new):
    files = netflix() if name == "netflix" else movielens(name)
    assert old in files[file]
    return files | {file: files[file].replace(old, new)}


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "message"),
    [
        ("ml-1m", "ratings.dat", b"2::10::1::80", b"2::10", r"line 3: '2::10' isn't USER::ITEM"),
        ("ml-1m", "ratings.dat", b"::80", b"::soon", r"line 3: '2::10::1::soon'"),
        ("ml-1m", "ratings.dat", b"::80", b"::80::1", r"line 3"),
        ("ml-100k", "u.data", b"\t80", b"", r"line 3: '2\\t10\\t1' isn't USER<tab>ITEM"),
        ("ml-25m", "ratings.csv", b",80", b"", r"ratings.csv, line 4: '2,10,1.0' isn't USER,ITEM"),
        ("ml-25m", "ratings.csv", b"userId", b"user", r"first line is 'user,movieId,rating,times"),
        ("ml-25m", "ratings.csv", b"1,10", b"99999999999,10", "csv, line 2: .* user that can"),
        ("ml-1m", "ratings.dat", b"2::10::1", b"2::9999999999::1", "line 3: .*item.*'9999999999'"),
        ("ml-1m", "ratings.dat", b"2::10::1::80", b"2\t10\t1\t80", r"line 3: '2\\t10\\t1\\t80'"),
        ("ml-1m", "ratings.dat", b"2::10::1", b"2::10::-9e9", r"line 3: .*rating.* 0\.5 and 5"),
        ("ml-1m", "ratings.dat", b"2::10::1", b"2::10::nan", "line 3: .*a rating that isn't"),
        ("ml-25m", "ratings.csv", b",1.0,", b",0.0,", "line 4: .*a rating that isn't"),
        ("ml-1m", "movies.dat", b"20::Persuasion::Drama|Comedy", b"20", "titles, '20' isn't a"),
        ("ml-100k", "u.item", b"20|", b"twenty|", "titles, 'twenty|Persuasion"),
        ("ml-25m", "movies.csv", b"20,", b"99999999999,", "titles, '99999999999,"),
        ("ml-25m", "movies.csv", b"Persuasion", b"x" * 200_000, "titles, '20,\"xxx"),
        ("netflix", "movie_titles.txt", b"20,1999,", b"20,", "titles, '20,Persuasion' isn't"),
        ("netflix", "training_set/mv_0000010.txt", b"10:\n", b"", "isn't MOVIE:, with which"),
        ("netflix", "training_set/mv_0000020.txt", b",3,", b",", r"movie 20: '1,2005-01-07' isn't"),
        ("netflix", "training_set/mv_0000030.txt", b"30:\n", b"30:\nx:\n", r"'x:' isn't MOVIE:"),
        ("netflix", "training_set/mv_0000030.txt", b"2005-01", b"2005-99", "movie 30: .*2005-99"),
        ("netflix", "training_set/mv_0000020.txt", b",3,", b",200,", "movie 20: .*between 1 and"),
        ("netflix", "training_set/mv_0000030.txt", b"30:", b"9999999999:", "'9999999999:' isn't"),
    ],
)  # fmt: skip
def test_a_broken_line_is_shown(name, file, old, new, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(name, as_folder(broken(name, file, old, new), tmp_path))


def test_a_folder_without_ratings_or_with_two_sets_or_an_empty_file(tmp_path):
    (tmp_path / "movies.dat").write_text("")
    with pytest.raises(ValueError, match=r"has no ratings\.dat"):
        read("ml-1m", tmp_path)
    (tmp_path / "ratings.dat").write_text("")
    with pytest.raises(ValueError, match="empty"):
        read("ml-1m", tmp_path)
    for sub in "ab":
        as_folder(movielens("ml-1m"), tmp_path / sub)
    with pytest.raises(ValueError, match=r"several files ratings\.dat"):
        read("ml-1m", tmp_path)


@pytest.mark.parametrize("name", ["ml-1m", "netflix"])
def test_a_file_of_one_empty_line_is_empty(name, tmp_path):
    path = tmp_path / ("mv_0000001.txt" if name == "netflix" else "ratings.dat")
    path.write_bytes(b"\n")
    with pytest.raises(ValueError, match=f"{path.name} is empty"):
        read(name, path)


def test_a_file_that_is_no_lines_is_not_gathered(tmp_path, monkeypatch):
    monkeypatch.setattr("mixedals.datasets.text.BLOCK", 1 << 16)
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1" * (2 << 20))
    with pytest.raises(ValueError, match="a line is longer than 1,048,576 bytes: '111"):
        read("ml-1m", path)
    path.write_bytes(b"".join(b"%d::7::5::9\r" % i for i in range(100_000)))
    assert len(read("ml-1m", path).interactions) == 100_000


def test_titles_in_two_files_are_titles_once(tmp_path):
    files = netflix()
    files["movie_titles.csv"] = files["movie_titles.txt"]
    assert_read(read("netflix", as_folder(files, tmp_path)), dates=True)
    files["movie_titles.csv"] = files["movie_titles.csv"].replace(b"Persuasion", b"Emma")
    with pytest.raises(ValueError, match="two titles of 20: 'Emma' and 'Persuasion'"):
        read("netflix", as_folder(files, tmp_path))


def test_what_is_needed_is_said():
    with pytest.raises(ValueError, match="there are ml-100k"):
        read("ml-2m", ".")
    with pytest.raises(ValueError, match="datasets fetch ml-1m"):
        read("ml-1m")
    with pytest.raises(FileNotFoundError, match="Kaggle"):
        read("netflix", "nowhere")
    with pytest.raises(ValueError, match="generated"):
        read("synthetic", ".")


def test_synthetic_needs_no_file():
    assert len(read("synthetic").interactions) == DATASETS["synthetic"].ratings


@pytest.mark.parametrize("name", ["ml-10m", "netflix"])
def test_a_converted_copy_holds_the_same(name, tmp_path):
    files = netflix() if name == "netflix" else movielens(name)
    folder = as_folder(files, tmp_path / "set")
    ratings, titles = convert(name, folder)
    assert (ratings.name, titles.name) == ("set.parquet", "set-titles.parquet")
    assert pl.read_parquet(titles).rows() == TITLES
    expected = read(name, folder).interactions.to_frame()
    assert read(name, ratings).interactions.to_frame().equals(expected)
    assert Interactions.read(ratings).to_frame().equals(expected)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ml.backup", "ml.backup.parquet"),
        ("ml.zip", "ml.parquet"),
        ("ml.2.tar.gz", "ml.2.parquet"),
        ("ratings.dat", "ratings.parquet"),
    ],
)
def test_a_converted_copy_is_named_as_what_it_is_of(path, expected, tmp_path):
    files = movielens("ml-1m")
    path = tmp_path / path
    if path.suffix == ".dat":
        path.write_bytes(files[path.name])
    elif path.suffix == ".gz":
        as_tar(files, path, "w:gz")
    else:
        (as_zip if path.suffix == ".zip" else as_folder)(files, path)
    assert convert("ml-1m", path)[0] == tmp_path / expected


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("ml-100k", "ml-100k", (100_000, 943, 1_682)),
        ("ml-1m", "ml-1m", (1_000_209, 6_040, 3_706)),
        ("ml-latest-small", "ml-latest-small", (100_836, 610, 9_724)),
        ("netflix", "netflix-sample.tar.gz", (389_324, 192_104, 20)),
    ],
)
def test_the_real_files(name, path, expected, real_data):
    got = read(name, real_data / path)
    data = got.interactions
    assert (len(data), data.n_users, data.n_items) == expected
    assert set(data.items) <= set(got.titles["item"])
    assert got.titles.filter(pl.col("title").str.len_chars() == 0).is_empty()


def test_an_unreadable_file_is_no_crash(tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_bytes(os.urandom(5000))
    with pytest.raises(ValueError, match="isn't USER::ITEM"):
        read("ml-1m", path)
