"""Ratings from a file as peers' users read them: with pandas."""

from pathlib import Path

import pandas as pd


def read(path: str) -> pd.DataFrame:
    """Columns user, item and rating of a Parquet or CSV file."""
    return pd.read_csv(path) if Path(path).suffix == ".csv" else pd.read_parquet(path)
