"""How many threads the kernels use."""

from joblib import cpu_count


def thread_count(n_threads: int | None) -> int:
    """``n_threads``, or every CPU that this process may use (its affinity and cgroup limits)."""
    return int(cpu_count()) if n_threads is None else n_threads
