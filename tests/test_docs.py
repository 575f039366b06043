"""Every block of Python and shell in the README and the documentation runs, page by page.

The blocks of a page run in their order, in a folder of its own, and see what those before left. A
block that can't run here has the reason in a comment before it: ``<!-- not run: ... -->``.
"""

import itertools
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
# A process each line, or a Spark.
SLOW = [ROOT / page for page in ("README.md", "docs/howto/command-line.md", "docs/spark.md")]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


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
    marks = [pytest.mark.slow] * (page in SLOW)
    if page.stem == "spark":
        marks.append(pytest.mark.xdist_group("spark"))
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [case(page) for page in PAGES])
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


def links(page: Path) -> Iterator[str]:
    """What the links and images of a page lead to, inside the repository."""
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        for child in token.children or []:
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if target and "://" not in target and not target.startswith("mailto:"):
                yield target


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    tokens = MarkdownIt().parse(page.read_text())
    texts = [
        after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", LINKED, ids=[str(page.relative_to(ROOT)) for page in LINKED])
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_file(), target
        assert not anchor or anchor in anchors(there), target
