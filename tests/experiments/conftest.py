import pytest

from mixedals.experiments import Records, Study
from mixedals.experiments.report import write_report
from mixedals.synthetic import generate_ratings


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder with a small study that is done, and its report."""
    folder = tmp_path_factory.mktemp("study")
    with Records(folder / "study.sqlite") as records:
        study = Study(
            generate_ratings(200, 100, 6000),
            records,
            name="<b>mine</b> & yours",
            seeds=2,
            grid=False,
        )
        study.run(progress=False)
        write_report(records, folder)
    return folder
