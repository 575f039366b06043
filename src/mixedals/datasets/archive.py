"""Files in a folder, a zip or a tar, read where they are: nothing is unpacked onto the disk."""

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

# Ratings as text shrink to a fifth or so. What grows far more than that is no set of ratings.
_MOST_GROWTH = 50
_ALWAYS_ALLOWED = 1 << 26
_MOST_BYTES = 1 << 34
_MOST_MEMBERS = 100_000

Wanted = Callable[[str], bool]


def members(path: Path, wanted: Wanted) -> Iterator[tuple[str, IO[bytes]]]:
    """Names (without folders) and contents of the wanted files, those in a tar in it included.

    A content is to be read before the next one is asked for. A file that is no archive is its own
    only member. What reads them needs ``whole`` around it.

    Raises
    ------
    ValueError
        The archive is made to harm: it has links or paths that lead out of it, or grows beyond
        measure.
    """
    if path.is_dir():
        yield from _of_folder(path, wanted)
        return
    with path.open("rb") as file:
        growth = _Growth(path)
        is_gzip = file.read(2) == b"\x1f\x8b"
        is_zip = zipfile.is_zipfile(file)
        file.seek(0)
        if is_zip:
            yield from _of_zip(zipfile.ZipFile(file), wanted, growth)
        elif is_gzip:
            unpacked = io.BufferedReader(_Counted(gzip.GzipFile(fileobj=file), growth), 1 << 20)
            yield from _of_tar(unpacked, wanted, growth, nested=True)
        elif path.suffix == ".tar":
            yield from _of_tar(file, wanted, growth, nested=True)
        elif wanted(path.name):
            yield path.name, file


def _of_folder(folder: Path, wanted: Wanted) -> Iterator[tuple[str, IO[bytes]]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".tar":
            yield from members(path, wanted)
        elif wanted(path.name) and path.is_file():
            with path.open("rb") as file:
                yield path.name, file


def _of_zip(
    archive: zipfile.ZipFile, wanted: Wanted, growth: "_Growth"
) -> Iterator[tuple[str, IO[bytes]]]:
    for info in archive.infolist():
        growth.count_member()
        name = _safe(info.filename)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ValueError(f"{info.filename!r} is a link")
        if wanted(name) and not info.is_dir():
            with archive.open(info) as file:
                yield name, io.BufferedReader(_Counted(file, growth), 1 << 20)


def _of_tar(
    stream: IO[bytes], wanted: Wanted, growth: "_Growth", *, nested: bool
) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 20) as archive:
        for member in archive:
            growth.count_member()
            name = _safe(member.name)
            # What a sparse file claims to hold isn't there to be counted.
            if not (member.isfile() or member.isdir()) or member.issparse():
                raise ValueError(f"{member.name!r} is a link, a device or a sparse file")
            file = archive.extractfile(member)
            if file is not None and nested and name.endswith(".tar"):
                yield from _of_tar(file, wanted, growth, nested=False)
            elif file is not None and wanted(name):
                yield name, file


def _safe(name: str) -> str:
    """The last part of a member's path, which must not lead out of the archive."""
    path, on_windows = PurePosixPath(name), PureWindowsPath(name)
    if path.is_absolute() or on_windows.anchor or ".." in on_windows.parts:
        raise ValueError(f"{name!r} leads out of it")
    return path.name


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Turns what reading a damaged archive raises into a ValueError that says so."""
    try:
        yield
    except (
        EOFError, NotImplementedError, RuntimeError, OSError, tarfile.TarError, zipfile.BadZipFile,
        zlib.error, lzma.LZMAError,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's; those without a number are bz2's and gzip's
        raise ValueError(f"{path} isn't a whole archive: {error}") from error


class _Growth:
    """How much an archive has grown so far, and how much it may."""

    def __init__(self, path: Path) -> None:
        size = path.stat().st_size
        self._path = path
        self._allowed = min(max(_MOST_GROWTH * size, _ALWAYS_ALLOWED), _MOST_BYTES)
        self._members = 0

    def count_bytes(self, n: int) -> None:
        self._allowed -= n
        if self._allowed < 0:
            raise ValueError(f"{self._path} unpacks to far more than ratings would: it isn't read")

    def count_member(self) -> None:
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise ValueError(f"{self._path} has more than {_MOST_MEMBERS:,} members")


class _Counted(io.RawIOBase):
    """A stream of which all that is read counts as growth."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, growth: _Growth) -> None:
        self._stream = stream
        self._growth = growth

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._stream.read(len(view))
        self._growth.count_bytes(len(data))
        view[: len(data)] = data
        return len(data)
