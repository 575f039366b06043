"""Downloads of data sets: resumed where they broke off, and checked before they are taken."""

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from mixedals._progress import progress_bar
from mixedals.datasets.registry import DataSet, named

_TRIES = 5
_TIMEOUT_SECONDS = 30
_CHUNK = 1 << 18
_MOST_BYTES = 1 << 31


class FetchError(OSError):
    """A data set can't be downloaded."""


def fetch(name: str, folder: str | os.PathLike[str] = ".", *, progress: bool | None = None) -> Path:
    """Download the archive of a data set, which :func:`read` reads as it is.

    What came before a connection broke is kept in a file that ends in ``.part``, and is gone on
    from, also by a later call. The archive gets its name only when its checksum is right.

    Parameters
    ----------
    name
        One of ``DATASETS``.
    folder
        Where the archive goes.
    progress
        Show a progress bar; None does in terminals and notebooks.

    Returns
    -------
    Path
        The archive.
    """
    dataset = named(name)
    if dataset.url is None:
        raise ValueError(f"{name} can't be fetched: {dataset.elsewhere or 'it is generated'}")
    target = Path(folder) / dataset.url.rpartition("/")[2]
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}")
    try:
        expected = dataset.md5 or _published_md5(dataset.url)
        if target.exists() and _md5(target) == expected:
            return target
        part = target.with_name(f"{target.name}.part")
        if not part.exists() or _md5(part) != expected:  # it may only lack its name
            _download(dataset.url, part, progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"{error.url} answers {error.code} {error.reason}") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchError(_unreachable(dataset, str(reason))) from error
    except http.client.HTTPException as error:
        raise FetchError(_unreachable(dataset, f"its answer is garbled: {error!r}")) from error
    if _md5(part) != expected:
        part.unlink()
        raise FetchError(
            f"{dataset.url}: what came has another checksum than {expected}, and is thrown away"
        )
    part.replace(target)

    return target


def _unreachable(dataset: DataSet, reason: str) -> str:
    return (
        f"{dataset.url} can't be reached ({reason}): try again, or download it elsewhere and give "
        "its path"
    )


def _published_md5(url: str) -> str:
    """The checksum that stands in the file beside a changing archive."""
    with _opened(f"{url}.md5") as answer:
        text = answer.read(1000).decode("ascii", "replace")
    found = re.search(r"\b[0-9a-fA-F]{32}\b", text)
    if found is None:
        raise FetchError(f"{url}.md5 holds no checksum")
    return found.group().lower()


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _opened(url: str, offset: int = 0) -> Any:
    headers = {"User-Agent": "mixedals"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    return urllib.request.urlopen(
        urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS
    )


def _download(url: str, part: Path, progress: bool | None) -> None:
    """Get the whole of a file into ``part``, going on from what is there."""
    tries = furthest = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _go_on(url, part, before, progress):
                return
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            broken: OSError = FetchError(f"the connection broke off: {error}")
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not before:
                raise
            error.close()
            part.unlink()  # more than there is: of another file
            broken = error
        else:
            broken = FetchError("it is shorter than announced")
        # Only tries in vain count: a connection that breaks off again and again still gets there.
        reached = part.stat().st_size if part.exists() else 0
        tries = 0 if reached > max(furthest, before) else tries + 1
        furthest = max(furthest, before, reached)
        if tries == _TRIES:
            raise urllib.error.URLError(str(broken))


def _go_on(url: str, part: Path, offset: int, progress: bool | None) -> bool:
    """Get what follows ``offset``; tells whether that was all."""
    with _opened(url, offset) as answer:
        if offset and not _continues(answer, offset):
            offset = 0
        total = None if answer.length is None else offset + answer.length
        with part.open("ab" if offset else "wb") as file:
            done = _copied(answer, file, offset, total, f"Fetching {url}", progress)
    return total is None or done == total


def _continues(answer: Any, offset: int) -> bool:
    """Tells whether an answer is the rest of the file, not the whole of it."""
    place = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
    return bool(answer.status == http.HTTPStatus.PARTIAL_CONTENT) and (
        place is not None and int(place.group(1)) == offset
    )


def _copied(
    answer: Any, file: IO[bytes], done: int, total: int | None, what: str, progress: bool | None
) -> int:
    with progress_bar(progress, what, total or 0, done) as show:
        while data := answer.read(_CHUNK):
            done += file.write(data)
            if done > _MOST_BYTES:
                raise FetchError(f"more than {_MOST_BYTES:,} bytes came: that is no such set")
            show(done, "")
    file.flush()
    os.fsync(file.fileno())
    return done
