"""Figures and the page, of arms that aren't the paper's."""

import json

import polars as pl
import pytest

from mixedals.experiments import ARMS, Arm, Point, Records, Study
from mixedals.experiments.figures import panels
from mixedals.experiments.report import _table, write_report
from mixedals.experiments.results import Curve, Model
from mixedals.synthetic import generate_ratings

HISTOGRAM = {"edges": [1.0, 1.1, 1.2], "rows": [3, 4]}


def reported(arm, folder):
    with Records(folder / "study.sqlite") as records:
        ratings = generate_ratings(120, 60, 3000)
        study = Study(ratings, records, arms=[arm], seeds=1, grid=False, ends_only=True)
        study.run(progress=False)
        page, found = write_report(records, folder)
    assert found == []
    return page.read_text()


def test_a_figure_with_nothing_to_show_is_left_out(tmp_path):
    page = reported(ARMS["plain-root"], tmp_path)
    assert "auc-by-parameters" in page
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert "seconds.svg" in names
    assert not [name for name in names if name.startswith("parameters-by-popularity")]


def test_a_table_without_rows():
    assert _table(("a", "b"), []) == (
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody></tbody></table>"
    )


@pytest.mark.parametrize("title", ["costs $\\frac$ x", "_mine"])
def test_titles_are_shown_as_they_are(title, tmp_path):
    sizes = [Point(f"{title} {d}", {"dims": (d, d + 1)}) for d in (1, 2)]
    reported(Arm("mine", title, sizes, {}, {}), tmp_path)
    for name in ("auc-by-parameters", "auc-by-iteration", "auc-by-popularity-users"):
        assert f">{title}<" in (tmp_path / "figures" / f"{name}.svg").read_text(), name
    shares = (tmp_path / "figures" / "parameters-by-popularity-users.svg").read_text()
    assert f">{title} 1<" in shares


def test_more_models_and_sizes_than_colours():
    n_models, n_sizes = 9, 10
    deciles = {"auc": [0.7] * 10, "parameters": [10] * 10}
    details = json.dumps(
        {
            "history": [[5, 0.7], [10, 0.8]],
            "tiers": [
                {"side": side, "p": p, "rows": 5}
                for side in ("users", "items")
                for p in range(1, n_sizes + 1)
            ],
            "deciles": {"users": deciles, "items": deciles},
        }
    )
    models = [
        Model(
            pl.DataFrame(
                {"point": [f"model {n}"], "n_parameters": [n + 1], "settings": ["{}"],
                 "test_auc": [0.8], "test_rmse": [0.4], "seconds": [1.0], "details": [details]}
            )
        )
        for n in range(n_models)
    ]  # fmt: skip
    drawn = panels(
        {"mine": Curve("mine", "mine", models)}, {"users": HISTOGRAM, "items": HISTOGRAM}
    )
    by_name = {panel.name: panel for panel in drawn}
    dimensions = by_name["dimensions-users"]
    assert {p for _, p, _ in dimensions.rows} == set(range(1, n_sizes + 1))
    assert len(dimensions.figure.axes[0].patches) == n_models * n_sizes
    assert len({row[0] for row in by_name["parameters-by-popularity-items"].rows}) == n_models
    for panel in drawn:
        legend = panel.figure.legends[0].get_texts() if panel.figure.legends else []
        assert len(legend) in {0, 1, n_sizes, n_models}
