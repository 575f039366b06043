"""``mixedals reproduce`` as it is typed."""

import json
import signal
import subprocess
import sys
import time

import pytest

from mixedals.experiments import Records
from mixedals.synthetic import generate_ratings


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    frame = generate_ratings(150, 80, 4000).to_frame()
    frame.rename({"user": "customer", "item": "thing"}).write_csv(path)
    return path


def run(*words):
    command = [sys.executable, "-m", "mixedals", "reproduce", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_ratings_of_ones_own(file, tmp_path):
    out = tmp_path / "study"
    words = (file, "--user", "customer", "--item", "thing", "--out", out, "--fast")
    done = run(*words, "--json", "--arms", "plain,padded")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["fits"] == 4
    assert [claim["verdict"] for claim in result["claims"]]
    assert (out / "report.html").read_text().count("<figure") == 12
    again = run(*words)
    assert again.returncode == 2
    assert "--resume goes on with it" in again.stderr
    more = run(*words, "--resume")
    assert more.returncode == 0, more.stderr
    assert "Projected is above plain at every size" in more.stdout
    assert "Traceback" not in more.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ml-1m"], "--out"),
        (["ml-2m", "--out", "x"], "neither a file nor a data set; there are ml-100k"),
        (["ml-1m", "--out", "x", "--user", "u"], "has a known layout"),
        (["synthetic", "--out", "x", "--arms", "plane"], "no arm plane; there are plain"),
        (["synthetic", "--out", "x", "--binarise", "5,6"], "other bounds"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.returncode in (1, 2, 3)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ratings_without_times(tmp_path):
    path = tmp_path / "ratings.csv"
    generate_ratings(50, 40, 500).to_frame().drop("timestamp").write_csv(path)
    done = run(path, "--out", tmp_path / "study")
    assert done.returncode == 3
    assert "needs timestamps" in done.stderr


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    out = tmp_path / "study"
    command = [sys.executable, "-m", "mixedals", "reproduce", "synthetic", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and n_finished(out / "study.sqlite") < 2:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "--resume goes on with it" in said
    assert "Traceback" not in said


def n_finished(path):
    if not path.exists():
        return 0
    try:
        with Records(path) as records:
            return len(records.results())
    except OSError:  # locked: it is being made
        return 0
