"""What only a process of its own shows: signals, terminals, pipes, full disks."""

import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mixedals import load

pytestmark = pytest.mark.slow  # a process each

LONG = ("--iterations", 200_000, "--eval-every", 10)


def wait_for(path):
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def screen_of(start, *args, env=None):
    """What a command shows on a terminal, and its code."""
    ours, theirs = pty.openpty()
    process = start(
        *args, stdin=theirs, stdout=theirs, stderr=theirs, env={"COLUMNS": "100"} | (env or {})
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return shown.decode(), process.wait(60)


def test_ctrl_c_keeps_the_model_so_far(start, ratings, tmp_path):
    output, checkpoint = tmp_path / "new.mixedals", tmp_path / "state"
    process = start("fit", ratings, "-o", output, "--checkpoint", checkpoint, *LONG, "--json")
    wait_for(checkpoint)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "mixedals: interrupted"
    assert "Traceback" not in err
    facts = json.loads(out)
    assert facts["interrupted"]
    assert len(load(output).history_) == facts["iterations"] >= 10


def test_ctrl_c_before_the_first_iteration_leaves_nothing(start, tmp_path):
    process = start("fit", "-", "-o", tmp_path / "new.mixedals")  # waits for ratings
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "mixedals: interrupted\n"
    assert not list(tmp_path.iterdir())


def test_without_a_terminal_there_is_the_result_alone(start, ratings, tmp_path):
    process = start("fit", ratings, "-o", tmp_path / "new.mixedals", "--split", "time")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\x1b" not in out
    assert "best_iteration" in out


def test_a_terminal_shows_what_was_read_and_progress(start, ratings, tmp_path):
    output = tmp_path / "new.mixedals"
    screen, code = screen_of(start, "fit", ratings, "-o", output, "--iterations", 50)
    assert code == 0
    assert "6,000 ratings" in screen
    assert "user='user'" in screen or "user" in screen
    assert "Training" in screen
    assert "objective" in screen
    assert "best_iteration" in screen
    assert "\x1b[" in screen


def test_no_color_is_respected(start, saved):
    colours = ("\x1b[3", "\x1b[9", "\x1b[1;3", "\x1b[38")
    coloured, _ = screen_of(start, "--help", env={"TERM": "xterm-256color"})
    assert any(code in coloured for code in colours)
    for args in (("--help",), ("inspect", saved)):
        plain, code = screen_of(start, *args, env={"TERM": "xterm-256color", "NO_COLOR": "1"})
        assert code == 0
        assert not any(code in plain for code in colours)


def test_everybody_is_not_poured_over_a_terminal(start, saved):
    screen, code = screen_of(start, "recommend", saved)
    assert code == 2
    assert "--output" in screen


def test_a_closed_pipe_ends_the_command_in_silence(start, saved):
    process = start("recommend", saved, "-k", 50)
    assert process.stdout.readline().startswith("user,item")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == -signal.SIGPIPE


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.parametrize(
    "args",
    [
        ("fit", "RATINGS", "-o", "new.mixedals", "--iterations", 2),
        ("recommend", "MODEL", "-o", "new.parquet"),
        ("recommend", "MODEL", "-o", "new.csv"),
        ("export", "MODEL", "-o", "folder"),
        ("export", "MODEL", "-o", "folder", "--as", "numpy"),
        ("export", "MODEL", "-o", "folder", "--as", "compact"),
        ("inspect", "MODEL", "--plot", "new.png"),
    ],
    ids=lambda args: " ".join(map(str, args)),
)
def test_a_full_disk_is_an_error_and_leaves_no_piece(start, ratings, saved, tmp_path, args):
    args = [{"RATINGS": ratings, "MODEL": saved}.get(arg, arg) for arg in args]
    process = start(*args, cwd=tmp_path, preexec_fn=limit_files)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert err.count("\n") == 1
    assert re.search(rf"{tmp_path}.*(File too large|requested and \d+ written)", err)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_output_that_nobody_may_write(start, ratings, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    process = start("fit", ratings, "-o", tmp_path / "new.mixedals")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Permission denied" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    script = Path(sys.executable).with_name("mixedals")
    environment = os.environ | {"_MIXEDALS_COMPLETE": f"source_{shell}"}
    source = subprocess.run([script], env=environment, capture_output=True, text=True, check=True)
    assert "_MIXEDALS_COMPLETE" in source.stdout
    environment = os.environ | {
        "_MIXEDALS_COMPLETE": "complete_bash", "COMP_WORDS": "mixedals rec", "COMP_CWORD": "1",
    }  # fmt: skip
    found = subprocess.run([script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["recommend"]


def test_help_and_version_are_quick_and_need_no_ratings(start):
    began = time.monotonic()
    out, _ = start("--version").communicate(timeout=60)
    assert out.startswith("mixedals 0.")
    assert time.monotonic() - began < 10
    imported = (
        "import sys; from mixedals.cli.app import app; print('polars' in sys.modules, "
        "'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", imported], capture_output=True, text=True)
    assert done.stdout == "False False\n"
