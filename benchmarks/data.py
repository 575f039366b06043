"""Generated ratings, kept between runs."""

from pathlib import Path

from mixedals.synthetic import generate_ratings

CACHE = Path(__file__).parent / ".cache"

# As many as MovieLens 25M has after the paper's filtering. The mean row has 2 (users) and 12
# (items) times as many ratings as the median row: in the Netflix Prize data 2.2 and 10, in
# MovieLens 25M, whose items are skewed more, 2.2 and about 20.
USERS, ITEMS, RATINGS = 150_000, 30_000, 13_000_000
USER_SKEW, ITEM_SKEW = 1.0, 1.8


def ratings_file(n_ratings: int = RATINGS, *, suffix: str = "parquet") -> Path:
    """A file of ``n_ratings`` ratings: users, items and the file grow with it."""
    path = CACHE / f"ratings-{n_ratings}.{suffix}"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        scale = n_ratings / RATINGS
        data = generate_ratings(
            int(USERS * scale),
            int(ITEMS * scale),
            n_ratings,
            user_skew=USER_SKEW,
            item_skew=ITEM_SKEW,
        )
        frame = data.to_frame().sample(fraction=1.0, shuffle=True, seed=0)
        if suffix == "csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
    return path
