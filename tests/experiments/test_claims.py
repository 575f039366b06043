"""Claims and differences, on records whose scores are known."""

import json

import numpy as np
import polars as pl
import pytest

from mixedals.experiments import Records
from mixedals.experiments.claims import FAILS, HOLDS, UNSURE, claims
from mixedals.experiments.records import Fit
from mixedals.experiments.results import Model, curves, difference, differences
from mixedals.experiments.scores import N_GROUPS, Scores

SIZES = {"d = 2": 200, "d = 4": 400, "d = 6": 600, "gamma = 1": 300, "gamma = 0.2": 450}
TITLES = {"plain": "plain", "padded": "padded", "projected": "projected"}


@pytest.fixture
def recorded(tmp_path):
    """Curves of arms from the AUC of each model; seeds and groups of users spread it."""

    def record(aucs, of_seeds=(0.0, 0.0), of_groups=0.0, sizes=SIZES):
        rng = np.random.default_rng(0)
        with Records(tmp_path / "study.sqlite") as records:
            records.set_fact("titles", {name: TITLES[name] for name in aucs})
            for arm, models in aucs.items():
                for label, auc in models.items():
                    for seed, shift in enumerate(of_seeds):
                        without = auc + shift + of_groups * rng.standard_normal(N_GROUPS)
                        scores = Scores(
                            sizes[label], 30, 0.9, auc + shift, 1 - auc,
                            {"without": without.tolist()},
                        )  # fmt: skip
                        records.add(Fit("sweep", arm, label, "{}", seed), scores, 1.0)
            return curves(records)

    return record


PLAIN = {"d = 2": 0.80, "d = 4": 0.82, "d = 6": 0.83}


def test_sizes_between_models_are_compared_with_the_line_between_them(recorded):
    of = recorded({"plain": PLAIN, "projected": {"gamma = 1": 0.82, "gamma = 0.2": 0.85}})
    found = differences(of["projected"], of["plain"])
    assert [of.n_parameters for of in found] == [300, 450]
    assert [of.auc for of in found] == pytest.approx([0.82 - 0.81, 0.85 - 0.8225])
    assert [of.rmse for of in found] == pytest.approx([-0.01, -0.0275])


def test_sizes_beyond_all_models_are_left_out(recorded):
    of = recorded(
        {"plain": PLAIN, "projected": {"gamma = 1": 0.82, "gamma = 0.2": 0.85}},
        sizes=SIZES | {"gamma = 1": 199, "gamma = 0.2": 600},
    )
    assert [of.n_parameters for of in differences(of["projected"], of["plain"])] == [600]


def model(aucs, without):
    """A model from the test AUC of each seed, and that without each group (seeds, groups)."""
    details = [json.dumps({"without": of}) for of in without]
    n = len(aucs)
    return Model(
        pl.DataFrame(
            {"point": ["d = 2"] * n, "n_parameters": [200] * n, "test_auc": aucs,
             "test_rmse": [0.4] * n, "details": details}
        )
    )  # fmt: skip


def test_the_error_is_that_of_seeds_and_of_groups():
    upper = model([0.80, 0.83, 0.81], [[0.80, 0.84], [0.81, 0.85], [0.82, 0.89]])
    lower = model([0.79, 0.80, 0.80], [[0.78, 0.80], [0.78, 0.80], [0.78, 0.80]])
    found = difference(upper, lower)
    # By seed 0.01, 0.03, 0.01; without either group, on average over the seeds, 0.03 and 0.06.
    assert found.auc == pytest.approx(0.05 / 3)
    seeds = (2 * (0.02 / 3) ** 2 + (0.04 / 3) ** 2) / 2 / 3
    groups = 1 / 2 * (0.015**2 + 0.015**2)
    assert found.error == pytest.approx(np.sqrt(seeds + groups), rel=1e-9)


def test_what_moves_both_models_is_no_error_of_their_difference():
    without = [[0.7, 0.8, 0.9], [0.6, 0.8, 0.7]]
    lower = model([0.80, 0.70], without)
    upper = model([0.81, 0.71], [[value + 0.01 for value in of] for of in without])
    assert difference(upper, lower).error == pytest.approx(0.0, abs=1e-12)


def test_the_jackknife_is_that_of_a_mean():
    """Of the mean of n independent values, the jackknife's error is the standard error."""
    values = np.random.default_rng(1).standard_normal(N_GROUPS)
    without = (values.sum() - values) / (N_GROUPS - 1)
    upper, lower = model([values.mean()], [without.tolist()]), model([0.0], [[0.0] * N_GROUPS])
    expected = values.std(ddof=1) / np.sqrt(N_GROUPS)
    assert difference(upper, lower).error == pytest.approx(expected, rel=1e-9)


def verdicts(of):
    return {claim.text.split(":")[0]: claim.verdict for claim in claims(of)}


@pytest.mark.parametrize(
    ("gain", "groups", "every", "most"),
    [(0.05, 1e-4, HOLDS, HOLDS), (-0.05, 1e-4, FAILS, FAILS), (0.001, 0.01, UNSURE, UNSURE)],
)
def test_verdicts(recorded, gain, groups, every, most):
    of = recorded(
        {
            "plain": PLAIN,
            "padded": {"gamma = 1": 0.815, "gamma = 0.2": 0.825},
            "projected": {"gamma = 1": 0.815 + gain, "gamma = 0.2": 0.83 + gain},
        },
        of_groups=groups,
    )
    found = verdicts(of)
    assert found["Projected is above plain at every size"] == every
    assert found["Projected is above padded at most sizes"] == most
    assert found["Projected, the largest model"] == every
    assert next(c for c in claims(of) if "largest" in c.text).measured.endswith(
        "with 25% fewer parameters"
    )


def test_one_size_below_is_enough_against_every(recorded):
    of = recorded(
        {"plain": PLAIN, "projected": {"gamma = 1": 0.70, "gamma = 0.2": 0.9}}, of_groups=1e-4
    )
    assert verdicts(of)["Projected is above plain at every size"] == FAILS


@pytest.mark.parametrize(
    ("gain", "groups", "verdict"),
    [
        (0.0, 1e-5, HOLDS),
        (-0.001, 1e-5, HOLDS),
        (0.05, 1e-3, HOLDS),
        (-0.01, 1e-5, FAILS),
        (-0.01, 1e-2, UNSURE),
        (0.0, 1e-2, UNSURE),
    ],
)
def test_padded_may_equal_plain(recorded, gain, groups, verdict):
    padded = {"gamma = 1": 0.81 + gain, "gamma = 0.2": 0.8225 + gain}
    text = "Padded at least equals plain (above on MovieLens 25M, equal on Netflix)"
    found = verdicts(recorded({"plain": PLAIN, "padded": padded}, of_groups=groups))
    assert found[text] == verdict


def test_without_sizes_in_common_nothing_can_be_told(recorded):
    of = recorded(
        {name: {f"{name} {i}": 0.8 for i in range(2)} for name in TITLES},
        of_groups=1e-4,
        sizes={"plain 0": 1, "plain 1": 2, "padded 0": 3, "padded 1": 4,
               "projected 0": 5, "projected 1": 6},
    )  # fmt: skip
    assert differences(of["projected"], of["plain"]) == []
    found = verdicts(of)
    del found["Projected, the largest model"]  # whatever its size
    assert len(found) == 3
    assert set(found.values()) == {UNSURE}


def test_arms_of_which_the_paper_claims_nothing(recorded):
    assert claims(recorded({"plain": PLAIN})) == []
