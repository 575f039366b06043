"""Archives that are made to harm, or that aren't whole."""

import gzip
import io
import tarfile
import zipfile

import pytest

from mixedals.datasets import read

LINE = b"1::10::5::100\n"


def zipped(path, *names, content=LINE):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return path


def tarred(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


EVIL = ["/etc/ratings.dat", "../ratings.dat", "a/../../ratings.dat", "C:\\x\\ratings.dat", "..\\x"]


@pytest.mark.parametrize("name", EVIL)
def test_paths_that_lead_out_are_refused(name, tmp_path):
    for path in (
        zipped(tmp_path / "a.zip", name, "set/ratings.dat"),
        tarred(tmp_path / "a.tar.gz", (tarfile.TarInfo(name), LINE)),
    ):
        with pytest.raises(ValueError, match="leads out"):
            read("ml-1m", path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz", "a.zip"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind, tmp_path):
    info = tarfile.TarInfo("ratings.dat")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(ValueError, match="link, a device"):
        read("ml-1m", tarred(tmp_path / "a.tar.gz", (info, b"")))


def test_a_sparse_file_which_claims_what_is_not_there_is_refused(tmp_path):
    info = tarfile.TarInfo("ratings.dat")
    info.pax_headers = {"GNU.sparse.map": "0,14", "GNU.sparse.size": str(1 << 20)}
    with pytest.raises(ValueError, match="sparse"):
        read("ml-1m", tarred(tmp_path / "a.tar.gz", (info, LINE)))


def test_links_in_a_zip_are_refused(tmp_path):
    info = zipfile.ZipInfo("ratings.dat")
    info.external_attr = 0o120777 << 16
    with pytest.raises(ValueError, match="link"):
        read("ml-1m", zipped(tmp_path / "a.zip", info, content=b"/etc/passwd"))


def test_a_zip_bomb_is_not_read_to_its_end(tmp_path):
    path = zipped(tmp_path / "bomb.zip", "ratings.dat", content=LINE * (30 << 20))
    assert path.stat().st_size < 2 << 20
    with pytest.raises(ValueError, match="far more than ratings"):
        read("ml-1m", path)


def test_a_bomb_in_what_is_passed_over_is_noticed_too(tmp_path):
    path = tmp_path / "bomb.tar.gz"
    with gzip.open(path, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
        info = tarfile.TarInfo("zeros")
        info.size = 400 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(ValueError, match="far more than ratings"):
        read("ml-1m", path)


def test_too_many_members(tmp_path, monkeypatch):
    monkeypatch.setattr("mixedals.datasets.archive._MOST_MEMBERS", 3)
    path = zipped(tmp_path / "a.zip", *(f"{i}.txt" for i in range(4)))
    with pytest.raises(ValueError, match="more than 3 members"):
        read("ml-1m", path)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_that_was_cut_or_damaged(kind, tmp_path):
    lines = b"".join(b"%d::%d::5::100\n" % (i, i * i % 977) for i in range(20_000))
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        zipped(path, "ratings.dat", content=lines)
    else:
        tarred(path, (tarfile.TarInfo("ratings.dat"), lines))
    whole = path.read_bytes()
    assert len(read("ml-1m", path).interactions) == 20_000
    middle = len(whole) // 2
    for harmed in (whole[:middle], whole[:middle] + b"\0" * 50 + whole[middle + 50 :]):
        path.write_bytes(harmed)
        with pytest.raises(ValueError, match=r"whole archive|isn't USER|has no"):
            read("ml-1m", path)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damage_in_whatever_way_a_zip_is_packed(method, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("ratings.dat", b"".join(b"%d::7::5::9\n" % i for i in range(5000)))
    data = bytearray(path.read_bytes())
    data[50:90] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.zip isn't a whole archive"):
        read("ml-1m", path)


def test_an_encrypted_zip(tmp_path):
    path = zipped(tmp_path / "a.zip", "ratings.dat")
    data = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="whole archive"):
        read("ml-1m", path)
