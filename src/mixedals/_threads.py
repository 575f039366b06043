"""How many threads there are to use, and whether polars' own are there."""

import os

from joblib import cpu_count

_IMPORTED_IN = os.getpid()


def thread_count(n_threads: int | None) -> int:
    """``n_threads``, or every CPU that this process may use (its affinity and cgroup limits)."""
    return int(cpu_count()) if n_threads is None else n_threads


def forked() -> bool:
    """Whether this process was forked since the import.

    polars' pool of threads stays behind in the parent: what needs it would wait forever. A server
    that forks once it has loaded a model has questions to answer, so they do without.
    """
    return os.getpid() != _IMPORTED_IN
