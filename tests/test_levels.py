"""The library at the instruction-set levels below this machine's highest, which is the default."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mixedals import _kernels as kernels

HERE = Path(__file__).parent
TESTS = ("test_training", "test_foldin", "test_persistence", "test_recommender")


@pytest.mark.slow
@pytest.mark.parametrize("level", [one for one in kernels.usable_levels() if one != kernels.LEVEL])
def test_training_answers_and_files_at_every_level(level):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(f"{HERE / name}.py" for name in TESTS)],
        env={**os.environ, "MIXEDALS_ISA": level},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=HERE.parent,
    )
    assert done.returncode == 0, done.stdout
