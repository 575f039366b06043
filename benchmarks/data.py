"""Generated ratings, kept between runs."""

from pathlib import Path

from mixedals.synthetic import generate_ratings

CACHE = Path(__file__).parent / ".cache"

# Shaped like MovieLens 25M after the paper's filtering.
USERS, ITEMS, RATINGS = 150_000, 30_000, 13_000_000


def ratings_file(n_ratings: int = RATINGS, *, suffix: str = "parquet") -> Path:
    """A file of ``n_ratings`` ratings: users, items and the file grow with it."""
    path = CACHE / f"ratings-{n_ratings}.{suffix}"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        scale = n_ratings / RATINGS
        data = generate_ratings(int(USERS * scale), int(ITEMS * scale), n_ratings)
        frame = data.to_frame().sample(fraction=1.0, shuffle=True, seed=0)
        if suffix == "csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
    return path
