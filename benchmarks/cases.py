"""What is measured: a task on ratings of some size, with some dimension, by some contestants."""

from dataclasses import dataclass
from typing import Any

from benchmarks.contestants import ALL, EXPLICIT, LEAST_SQUARES, MIXED_MODELS

# Dimensions of the mixed models beside the plain one of each dimension.
MIXED = {6: (2, 4, 6), 16: (4, 8, 16), 64: (16, 32, 64), 128: (32, 64, 128)}


@dataclass(frozen=True)
class Case:
    """One run: contestants are measured one after another, and their figures compared."""

    task: str
    size: str
    dimension: int
    contestants: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.task}/{self.size}/{self.dimension}"

    @property
    def suffix(self) -> str:
        """Of the file that is read."""
        return "csv" if self.task == "file" else "parquet"

    @property
    def part(self) -> str:
        """What is trained on."""
        return "train" if self.task == "quality" else "all"

    def dims(self, contestant: str) -> Any:
        """The sizes of embeddings that a contestant is given."""
        mixed = contestant.startswith("mixedals, ")
        return MIXED[self.dimension] if mixed else self.dimension

    def amount(self, contestant: str, *, sampled: bool) -> dict[str, int]:
        """How much work is enough to be measured well, and not more."""
        quick = contestant.startswith("mixedals") or contestant == "LensKit"
        heavy = self.dimension >= 64
        return {
            "iterations": (2 if heavy else 20) if quick else (1 if heavy else 3),
            "repeats": 3 if quick else 1,
            "users": 500 if sampled else 20_000,
        }


CASES = (
    *(Case("iteration", "ml-1m", d, ALL) for d in (6, 16, 64)),
    Case("iteration", "netflix-quarter", 6, ALL),
    Case("iteration", "netflix-quarter", 64, ("mixedals", "cmfrec, CG", "LensKit")),
    Case("iteration", "13M", 6, (*MIXED_MODELS, "mixedals, sampled", *ALL)),
    Case("iteration", "13M", 16, (*MIXED_MODELS, *ALL)),
    Case("iteration", "13M", 64, (*MIXED_MODELS, *EXPLICIT, "implicit, CG")),
    Case("iteration", "13M", 128, (*MIXED_MODELS, "mixedals", "LensKit", "implicit, CG")),
    Case("iteration", "26M", 6, ("mixedals",)),
    Case("iteration", "100M", 6, ("mixedals", "LensKit")),
    *(Case("quality", size, 16, LEAST_SQUARES) for size in ("ml-1m", "netflix-quarter")),
    Case("memory", "13M", 6, ALL),
    Case("memory", "26M", 6, ("mixedals",)),
    Case("memory", "13M", 64, ("mixedals", "LensKit")),
    Case("recommend", "13M", 64, ("mixedals", "cmfrec, CG", "LensKit", "implicit, CG")),
    Case("file", "25M", 6, EXPLICIT),
)
