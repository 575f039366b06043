"""Trains the paper's three models on generated ratings and compares them."""

import time

from rich.console import Console
from rich.table import Table

from mixedals import Interactions, MixedALS, split_by_time
from mixedals.metrics import roc_auc
from mixedals.synthetic import generate_ratings

MODELS = {
    "plain, d = 6": MixedALS(dims=6, reg=2.0),
    "zero-padded, dims 2, 4, 6": MixedALS(dims=(2, 4, 6), projection="padded", reg=2.0),
    "projected, dims 2, 4, 6": MixedALS(dims=(2, 4, 6), reg=2.0, projection_reg=300.0),
}


def test_auc(model: MixedALS, test: Interactions) -> float:
    """ROC AUC on held-out ratings."""
    pairs = test.to_frame()
    return roc_auc(pairs["rating"].to_numpy(), model.predict(pairs["user"], pairs["item"]))


def main() -> None:
    """Prints one line a model."""
    data = generate_ratings(n_users=20_000, n_items=5_000, n_ratings=2_000_000)
    train, valid, test = split_by_time(data.binarise(at_most=2, at_least=4), (0.8, 0.1, 0.1))
    valid, test = valid.restrict_to(train), test.restrict_to(train)
    console = Console()
    console.print(f"training: {train}")
    table = Table("model", "parameters", "test ROC AUC", "seconds")
    for name, model in MODELS.items():
        began = time.perf_counter()
        model.fit(train, validation=valid)
        seconds = time.perf_counter() - began
        table.add_row(
            name, f"{model.n_parameters_:,}", f"{test_auc(model, test):.4f}", f"{seconds:.2f}"
        )
    console.print(table)


if __name__ == "__main__":
    main()
