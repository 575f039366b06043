"""A whole small study: the same results however often it is stopped."""

import signal
import subprocess
import sys
import time
from collections import Counter

import polars as pl
import pytest

from mixedals import Interactions
from mixedals.experiments import ARMS, Arm, Point, Records, Study, scores
from mixedals.experiments.arms import PAPER
from mixedals.experiments.results import curves
from mixedals.experiments.study import _histogram
from mixedals.synthetic import generate_ratings

QUICK = Arm(
    "quick",
    "quick",
    [Point("d = 1", {"dims": 1}), Point("d = 2", {"dims": 2}), Point("d = 3", {"dims": 3})],
    {"reg": (0.3, 3.0)},
    {"reg": 1.0},
)

SCRIPT = """
import sys
from mixedals.experiments import Records, Study
from mixedals.synthetic import generate_ratings
ratings = generate_ratings(200, 100, 6000)
Study(ratings, Records(sys.argv[1]), arms=["plain", "projected"]).run(progress=False)
"""


@pytest.fixture(scope="module")
def ratings() -> Interactions:
    return generate_ratings(200, 100, 6000)


@pytest.fixture
def records(tmp_path):
    with Records(tmp_path / "study.sqlite") as records:
        yield records


def test_a_study_does_what_the_protocol_says(ratings, records):
    Study(ratings, records, arms=[QUICK], seeds=2).run(progress=False)
    grid, sweep = records.fits("grid"), records.fits("sweep")
    assert Counter(grid["point"]) == {"d = 3": 2 * 3}
    assert set(grid["fold"]) == {0, 1, 2}
    assert sorted(sweep.select("point", "seed").rows()) == [
        (f"d = {d}", seed) for d in (1, 2, 3) for seed in (0, 1)
    ]
    best = grid.group_by("settings").agg(pl.mean("test_auc")).sort("test_auc")["settings"][-1]
    chosen = set(sweep["settings"].str.json_path_match("$.reg"))
    assert chosen == {pl.Series([best]).str.json_path_match("$.reg")[0]}
    assert (sweep["best_iteration"] % 5 == 0).all()


def test_without_a_search_and_only_the_ends(ratings, records):
    Study(ratings, records, arms=[QUICK], seeds=1, grid=False, ends_only=True).run(progress=False)
    assert records.fits("grid").is_empty()
    assert records.fits("sweep")["point"].to_list() == ["d = 1", "d = 3"]
    assert set(records.fits("sweep")["settings"].str.json_path_match("$.reg")) == {"1.0"}


def test_more_seeds_and_arms_are_added_to_what_is_there(ratings, records):
    Study(ratings, records, arms=["plain"], seeds=1, grid=False).run(progress=False)
    before = records.fits("sweep")
    Study(ratings, records, arms=["plain", "padded"], seeds=2, grid=False).run(progress=False)
    after = records.fits("sweep")
    assert len(after) == 2 * (5 + 4)
    assert set(before.rows()) < set(after.rows())
    Study(ratings, records, arms=[QUICK], seeds=2, grid=False)  # which does nothing yet
    assert set(curves(records)) == {"plain", "padded"}


def test_ratings_that_do_not_fit_leave_no_trace(ratings, records):
    with pytest.raises(ValueError, match="other bounds"):
        Study(ratings, records, arms=[QUICK], bounds=(5, 6))
    assert records.fact("identity") is None


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on_and_gives_the_same(ratings, records, tmp_path):
    Study(ratings, records, arms=["plain", "projected"]).run(progress=False)
    path = tmp_path / "killed.sqlite"
    n_whole = len(records.results())
    kills = 0
    for wanted in (3, 30, 65, 75):  # in the first folds, in the last, in the sweep
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)])
        try:
            while process.poll() is None and n_finished(path) < wanted:
                time.sleep(0.002)
        finally:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    assert 0 < n_finished(path) < n_whole
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True)
    with Records(path) as resumed:
        assert resumed.results().equals(records.results())


def n_finished(path) -> int:
    if not path.exists():
        return 0
    try:
        with Records(path) as there:
            return len(there.fits("grid")) + len(there.fits("sweep"))
    except OSError:  # locked: it is being made
        return 0


def test_records_of_another_study_are_refused(ratings, records):
    Study(ratings, records, arms=[QUICK])
    with pytest.raises(ValueError, match="differs in ratings"):
        Study(generate_ratings(100, 50, 2000), records, arms=[QUICK])
    with pytest.raises(ValueError, match="differs in grid search"):
        Study(ratings, records, arms=[QUICK], grid=False)


def test_an_arm_stands_for_the_same_models_throughout(ratings, records):
    def arm(reg=1.0, dims=3, title="quick"):
        points = [*QUICK.points[:2], Point("d = 3", {"dims": dims})]
        return Arm("quick", title, points, QUICK.grid, {"reg": reg})

    options = {"grid": False, "seeds": 1}
    Study(ratings, records, arms=[arm()], **options).run(progress=False)
    for other in (arm(reg=2.0), arm(dims=4)):
        with pytest.raises(ValueError, match="there is another arm 'quick'"):
            Study(ratings, records, arms=[other], **options)
    Study(ratings, records, arms=["plain", arm(title="fast")], **options).run(progress=False)
    assert [len(model.fits) for model in curves(records)["quick"].models] == [1, 1, 1]
    with pytest.raises(ValueError, match="there is another arm 'plain'"):
        Study(ratings, records, arms=[Arm("plain", "", QUICK.points, {}, {})], **options)


def test_points_of_an_arm_are_told_apart_by_their_labels():
    with pytest.raises(ValueError, match="have the same label"):
        Arm("mine", "mine", [Point("d", {"dims": 1}), Point("d", {"dims": 2})], {}, {})


def test_threads_are_those_of_the_scores_too(ratings, records, monkeypatch):
    seen = []

    class Watched(scores.Validation):
        def __init__(self, *given):
            seen.append(given[-1])
            super().__init__(*given)

    monkeypatch.setattr(scores, "Validation", Watched)
    monkeypatch.setattr("mixedals._threads.cpu_count", lambda: 7)
    options = {"grid": False, "ends_only": True}
    Study(ratings, records, arms=[QUICK], seeds=1, n_threads=1, **options).run(progress=False)
    Study(ratings, records, arms=[QUICK], seeds=2, **options).run(progress=False)
    assert seen == [1, 7]


def test_a_file_that_holds_no_study_is_refused(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" * 100)
    with pytest.raises(ValueError, match="doesn't hold a study"):
        Records(path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Records(tmp_path / "nowhere" / "study.sqlite")
    with pytest.raises(OSError, match="unable to open"):
        Records(tmp_path)


def test_a_full_disk_is_no_crash(ratings, records):
    records._file.execute("PRAGMA max_page_count = 8")
    with pytest.raises(OSError, match="is full"):
        Study(ratings, records, arms=["plain"], grid=False).run(progress=False)
    records._file.execute("PRAGMA max_page_count = 10000")
    Study(ratings, records, arms=["plain"], grid=False).run(progress=False)
    assert len(records.fits("sweep")) == 15


def test_an_arm_that_is_not_there_is_named(ratings, records):
    with pytest.raises(ValueError, match="no arm 'plane'; there are plain, padded"):
        Study(ratings, records, arms=["plane"])


def test_progress_counts_what_was_done_before(ratings, records, monkeypatch):
    seen = []

    def bar(shown, what, total, done):
        from contextlib import nullcontext

        seen.append((total, done))
        return nullcontext(lambda done, standing: seen.append((done, standing)))

    monkeypatch.setattr("mixedals.experiments.study.progress_bar", bar)
    Study(ratings, records, arms=[QUICK], seeds=1).run()
    total = 30 * (2 * 3 + 3)
    assert seen[0] == (total, 0)
    assert [done for done, _ in seen[1:]] == [*range(1, total + 1)]
    assert seen[-1][1] == "sweep: quick, d = 3, seed 0"
    seen.clear()
    Study(ratings, records, arms=[QUICK], seeds=2).run()
    assert seen[0] == (total + 30 * 3, total)


def test_arms_are_of_one_kind():
    assert set(PAPER) < set(ARMS)
    assert sum(len(ARMS[name].points) for name in ("plain", "padded", "projected")) == 13
    for arm in ARMS.values():
        assert set(arm.grid) == set(arm.penalties)


def test_histogram():
    import numpy as np

    histogram = _histogram(np.array([10, 10, 11, 13, 100]))
    assert histogram["edges"][:2] == [1.0, 1.1]
    assert histogram["rows"] == [3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
