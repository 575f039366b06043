"""Every block of Python and shell in the README and the documentation runs, page by page.

The blocks of a page run in their order, in a folder of its own, and see what those before left. A
block that can't run here has the reason in a comment before it: ``<!-- not run: ... -->``.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = {"python", "sh", "{code-cell}"}


def blocks(page: Path) -> Iterator[tuple[str, str, int]]:
    """Language, text and first line of each block that runs."""
    excused = False
    for token in MarkdownIt().parse(page.read_text()):
        if token.type == "html_block":
            excused = bool(re.match(r"<!-- not run: \S.* -->", token.content))
        elif token.type == "fence":
            language = token.info.split()[0] if token.info else ""
            if language in RUN and not excused:
                assert token.map is not None
                yield language, token.content, token.map[0] + 1
            excused = False


def run_python(text: str, page: Path, line: int, names: dict[str, object]) -> None:
    exec(compile("\n" * line + text, page, "exec"), names)


def run_shell(text: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def case(page: Path) -> object:
    marks = (pytest.mark.slow, pytest.mark.xdist_group("spark")) if page.stem == "spark" else ()
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", map(case, PAGES))
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, text, line in blocks(page):
        if language == "sh":
            run_shell(text)
        else:
            run_python(re.sub(r"\A(:.*\n)+", "", text), page, line, names)


def test_every_block_says_its_language():
    for page in PAGES:
        for token in MarkdownIt().parse(page.read_text()):
            assert token.type != "fence" or token.info, f"{page}:{token.map}"
            assert token.type != "fence" or not token.info.startswith(("bash", "py ", "shell"))
