"""Pages of critics that hardly learned: their distances are tested elsewhere."""

from functools import partial

import pytest

from evaluation import distances


@pytest.fixture(scope="session", autouse=True)
def _quick_critics():
    quick = partial(distances.wasserstein_distances, updates=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "wasserstein_distances", quick)
        yield
