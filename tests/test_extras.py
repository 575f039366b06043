import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mixedals._extras import MissingExtraError, require

HIDDEN = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Without())
"""
# What an extra installs, and what of it is imported by that name.
EXTRAS = {"export": ("usearch",), "plot": ("matplotlib",), "tune": ("optuna", "sqlalchemy")}


def without(packages, code):
    hidden = HIDDEN.format(packages=repr(set(packages)))
    return subprocess.run(
        [sys.executable, "-c", hidden + code], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_all_that_is_no_extra_works_without_any():
    packages = [name for names in EXTRAS.values() for name in names] + ["pandas", "pyarrow"]
    done = without(packages, """
import pathlib, tempfile
import mixedals, mixedals.cli.app, mixedals.export, mixedals.plan, mixedals.plots
import mixedals.ranking, mixedals.tuning, mixedals.synthetic, mixedals.datasets
data = mixedals.synthetic.generate_ratings(50, 30, 500)
model = mixedals.MixedALS(iterations=2).fit(data)
with tempfile.TemporaryDirectory() as folder:
    model.save(pathlib.Path(folder) / "model.mixedals")
    mixedals.load(pathlib.Path(folder) / "model.mixedals")
    mixedals.export.write_compact(model, folder)
    mixedals.export.write_parquet(model, folder)
    data.to_frame().write_csv(pathlib.Path(folder) / "ratings.csv")
    mixedals.Interactions.read(pathlib.Path(folder) / "ratings.csv")
print(len(model.recommend(k=2)))
""")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


USES = {
    "export": "mixedals.export.build_index(model)",
    "plot": "mixedals.plots.plot_model(model)",
    "tune": "mixedals.tuning.Search(data, data)",
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", USES)
def test_a_missing_extra_is_named(extra):
    done = without(EXTRAS[extra], f"""
import mixedals.export, mixedals.plots, mixedals.tuning
data = mixedals.synthetic.generate_ratings(50, 30, 500)
model = mixedals.MixedALS(iterations=2).fit(data)
{USES[extra]}
""".replace("import mixedals.export", "import mixedals.synthetic, mixedals.export"))  # fmt: skip
    last = done.stderr.splitlines()[-1]
    assert last.startswith("mixedals._extras.MissingExtraError: "), done.stderr
    assert f'pip install "mixedals[{extra}]"' in last


def test_an_error_inside_a_package_stays_what_it_is(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all") as caught:
        require("half_there", "plot")
    assert not isinstance(caught.value, MissingExtraError)


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])
