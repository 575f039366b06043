"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty file beside ``path`` to write to, which takes its place when all went well.

    What was at ``path`` before stays until then, and its permissions remain. A link is followed;
    what isn't a file, such as a device, is refused.
    """
    path = Path(path).resolve()
    temporary = _beside(path)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if named := _naming(path, error):
            raise named from error
        raise
    # The rename itself is on disk only once its folder is.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises OSError where ``replacing`` would, before there is anything to write."""
    _beside(Path(path).resolve()).unlink()


def _beside(path: Path) -> Path:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is not a file, so nothing can be written in its place")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:  # the file that was asked for says more than that beside it
        raise type(error)(error.errno, error.strerror, str(path)) from error
    return temporary


def _naming(path: Path, error: BaseException) -> OSError | None:
    """An error that names the file, for one that says only that writing failed."""
    from polars.exceptions import PolarsError

    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        return type(error)(error.errno, error.strerror, str(path))
    # NumPy and polars say it in a text of their own, polars not even as OSError.
    if isinstance(error, PolarsError) or type(error) is OSError:
        return OSError(f"{path}: {error}")
    return None
