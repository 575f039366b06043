"""Whatever is wrong: one line that says it, a code, no traceback, nothing left behind."""

import re
import sys
from pathlib import Path

import pytest

from mixedals.cli.errors import DATA, EXIT_CODES, FAILED, MISSING_EXTRA, MODEL, UNKNOWN_ID, USAGE

GOOD = "user,item,rating\na,x,4\nb,y,2\n"
FILES = {
    "good.csv": GOOD,
    "empty.csv": "",
    "header.csv": "user,item,rating\n",
    "text.csv": "user,item,rating\na,x,4\nb,y,great\nc,z,bad\n",
    "nan.csv": "user,item,rating\na,x,NaN\nb,y,3\n",
    "missing.csv": "user,item,rating\na,x,\nb,y,3\n",
    "infinite.csv": "user,item,rating\na,x,inf\nb,y,3\n",
    "nobody.csv": "user,item,rating\n,x,4\nb,y,3\n",
    "twice.csv": "user,item,rating\na,x,4\na,x,3\n",
    "implicit.csv": "user,item\na,x\n",
    "ragged.csv": "user,item,rating\na,x,1\nb,y,3,4,5\n",
    "semicolons.csv": "user;item;rating\na;x;1\n",
    "strangers.csv": "user,item,rating\n-1,-1,4\n-2,-1,2\n",
    "words.csv": "user,item\na,x\n",
    "noise.parquet": "\x00\x1b[31mnot parquet",
    "noise.mixedals": "\x00\x1b[31mnot a model",
}

FIT = [
    ("no-such.csv", FAILED, "there is no file 'no-such.csv'"),
    ("empty.csv", DATA, "can't read empty.csv: empty CSV"),
    ("header.csv", DATA, "there are no ratings"),
    ("text.csv", DATA, "2 of 3 rows have a rating that isn't a number.*'b'.*rating='great'"),
    ("nan.csv", DATA, "1 of 2 rows.*isn't a finite number.*user='a'"),
    ("missing.csv", DATA, "1 of 2 rows.*isn't a finite number.*rating=None"),
    ("infinite.csv", DATA, "1 of 2 rows.*isn't a finite number.*rating=inf"),
    ("nobody.csv", DATA, "1 of 2 rows have no user"),
    ("twice.csv", DATA, "1 of 2 rows.*user='a', item='x' in rows 0 and 1.*--duplicates mean"),
    ("implicit.csv", DATA, "no column is recognised as the ratings.*--rating"),
    ("ragged.csv", DATA, "can't read ragged.csv"),
    ("semicolons.csv", DATA, "the columns are: 'user;item;rating'; say which with --user"),
    ("noise.parquet", DATA, "can't read noise.parquet"),
    (".", DATA, "is a folder"),
    ("good.csv noise.parquet", DATA, "files of one format"),
    ("good.csv --rating points", DATA, "no column 'points'; the columns are: 'user', 'item'"),
    ("good.csv --rating item", DATA, "one column can't have two roles"),
    ("good.csv --dims 2,x", USAGE, "--dims: '2,x' must be whole numbers"),
    ("good.csv --dims 0,2", USAGE, "dims"),
    ("good.csv --reg -1", USAGE, "reg=-1.0: it must be a number from 0"),
    ("good.csv --reg users=1", USAGE, "reg={'users': 1.0}: it must be"),
    ("good.csv --reg lots", USAGE, "--reg: 'lots' must be a number"),
    ("good.csv --gamma 0", USAGE, "gamma must be above 0"),
    ("good.csv --eval-every 0", USAGE, "--eval-every"),
    ("good.csv --metric auc", USAGE, "--metric"),
    ("good.csv --fractions 1 --split time", USAGE, "--fractions: '1' must be two or three"),
    ("good.csv --fractions a,b --split time", USAGE, "'a,b' must be numbers"),
    ("good.csv --split time", DATA, "time"),
    ("good.csv --split random --validation good.csv", USAGE, "either --split or --validation"),
    ("good.csv --binarise 4,2", USAGE, "--binarise: '4,2' must be two rising numbers"),
    ("good.csv --metric roc_auc --validation good.csv --binarise 1,5", DATA, "no ratings"),
    ("good.csv --settings no.toml", USAGE, "no.toml"),
    ("good.csv --start noise.mixedals", MODEL, "noise.mixedals"),
    ("good.csv --nonsense", USAGE, "No such option: --nonsense.*mixedals fit --help"),
]

OTHERS = [
    ("fit good.csv", USAGE, "--output: say where the model goes"),
    ("fit good.csv -o no/folder/m.mixedals", FAILED, "there is no folder"),
    ("fit good.csv -o .", FAILED, "is not a file"),
    ("fit good.csv -o /dev/null", FAILED, "/dev/null is not a file"),
    ("nonsense", USAGE, "No such command 'nonsense'"),
    ("recommend no.mixedals 1", FAILED, "no.mixedals"),
    ("recommend noise.mixedals 1", MODEL, "not a whole mixedals file"),
    ("recommend good.csv 1", MODEL, "not a whole mixedals file"),
    ("recommend model.mixedals 1 999999", UNKNOWN_ID, "1 of 2 users are not in the model.*999999"),
    ("recommend model.mixedals ann", UNKNOWN_ID, "'ann' is not in the model.*int64"),
    ("recommend model.mixedals 1 -k 0", USAGE, "'--count' / '-k'"),
    ("recommend model.mixedals 1 -o best.txt", USAGE, "best.txt must end in one of .parquet"),
    ("recommend model.mixedals 1 --titles good.csv", DATA, "good.csv: no column.*titles.*--title"),
    ("similar model.mixedals 999999", UNKNOWN_ID, "1 of 1 items are not in the model"),
    ("similar model.mixedals 1 --users --titles good.csv", USAGE, "only items have titles"),
    ("predict model.mixedals header.csv", DATA, "there are no pairs"),
    ("predict model.mixedals words.csv", DATA, "ids here are of type int64"),
    ("predict model.mixedals semicolons.csv", DATA, "no column is recognised as the users"),
    ("evaluate model.mixedals header.csv", DATA, "there are no ratings"),
    ("evaluate model.mixedals strangers.csv", DATA, "knows user and item of none of the 2"),
    ("evaluate model.mixedals ratings.csv --relevant-above 9", DATA, "nothing to rank.*lower"),
    ("inspect model.mixedals --plot model.gif", USAGE, "model.gif must end in .png"),
    ("inspect model.mixedals --plot no/model.png", FAILED, "there is no folder"),
    ("export model.mixedals -o good.csv", FAILED, "good.csv"),
    ("tune good.csv", USAGE, "say what to choose by: --split or --validation"),
    ("tune good.csv --split random --gamma 1", USAGE, "--gamma: '1' must be two numbers"),
    ("tune good.csv --split random --reg 5,1", USAGE, "reg=.*a least and a largest"),
    ("tune good.csv --split random -o no/m.mixedals", FAILED, "there is no folder"),
    ("datasets fetch nothing", DATA, "nothing"),
    ("datasets convert ml-100k no-such.zip", FAILED, "no-such.zip"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch, model, ratings):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "ratings.csv").write_bytes(ratings.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [(f"fit {rest} -o new.mixedals --iterations 2", code, of) for rest, code, of in FIT] + OTHERS,
)
def test_an_error_is_one_line_and_a_code(run, folder, line, code, message):
    there = {*folder.iterdir()}
    done = run(*line.split())
    assert done.code == code, done
    assert done.out == ""
    assert done.err.startswith("mixedals: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err  # nobody's file speaks to the terminal
    assert re.search(message, done.err), done.err
    assert {*folder.iterdir()} == there


@pytest.mark.parametrize(
    ("line", "package", "extra"),
    [
        ("inspect model.mixedals --plot model.png", "matplotlib", "plot"),
        ("tune ratings.csv --split random", "optuna", "tune"),
        ("export model.mixedals --as usearch -o folder", "usearch", "export"),
    ],
)
def test_a_missing_package_is_named_by_its_extra(run, folder, monkeypatch, line, package, extra):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    done = run(*line.split())
    assert done.code == MISSING_EXTRA
    assert f'{package} is not installed: pip install "mixedals[{extra}]" installs it' in done.err
    assert done.err.count("\n") == 1


class _Without:
    """As if a package weren't installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=self._package)


def test_a_defect_of_the_program_keeps_its_traceback(run, folder, monkeypatch):
    def broken(*_):
        raise KeyError("a defect")

    monkeypatch.setattr("mixedals.load", broken)
    with pytest.raises(KeyError, match="a defect"):
        run("inspect", "model.mixedals")


def test_the_codes_of_the_documentation_are_these():
    page = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page.read_text(), re.MULTILINE)
    assert {int(code): what.replace(";", ",") for code, what in rows} == EXIT_CODES
