"""The examples in which the transform goes, with one line, into a pipeline that is not ours."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from torchrl.collectors import Collector

from sipo_trl.archive import Archive

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
# Where each pipeline has its rewards, the task's and one per archived policy; and which of its
# trainings (the first, the second with the line, another without) starts as the second does.
PIPELINES = {
    "gymnasium_ppo": ("reward", "intrinsic_reward", 0),
    "vmas_ppo": (("agents", "reward"), "intrinsic_reward", 2),
}


def load(name: str) -> ModuleType:
    library = name.removesuffix("_ppo")
    pytest.importorskip(library, reason=f"{library} is not installed; it is in the extra 'dev'")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("name", PIPELINES)
def test_example_runs_and_only_its_second_training_sees_the_distance(
    name, tmp_path, monkeypatch, capsys
) -> None:
    seen = []

    class Recorder(Collector):
        def __iter__(self):
            for batch in super().__iter__():
                seen.append(batch["next"].detach().clone())
                yield batch

    example = load(name)
    monkeypatch.setattr(example, "Collector", Recorder)
    monkeypatch.setattr(example, "HORIZON", 20)
    monkeypatch.setattr(example, "EPOCHS", 1)
    example.main(["--frames", str(example.BATCH), "--out", str(tmp_path)])

    reward, distance, twin = PIPELINES[name]
    first, with_line, another = seen
    for batch in (first, another):
        assert distance not in batch.keys(True)
    # From one seed both begin with the same steps: what differs in the reward is the distance.
    bonus = with_line[reward] - seen[twin][reward]
    expected = example.WEIGHT * with_line[distance]
    assert expected.shape == (*with_line.shape, 1)
    assert expected.max() < 0
    while expected.ndim < bonus.ndim:  # every agent gets what the team gets
        expected = expected.unsqueeze(-2)
    assert bonus.allclose(expected, atol=1e-4)

    archive = Archive.open(tmp_path / "archive")
    assert len(archive) == 2
    assert 0 < archive[1].metrics["similarity"] < 1
    assert (tmp_path / "states.png").stat().st_size > 0
    assert "with the line" in capsys.readouterr().out


@pytest.mark.parametrize("name", PIPELINES)
def test_the_pipeline_is_not_ours(name) -> None:
    source = (EXAMPLES / f"{name}.py").read_text()
    assert source.count("StateDistanceReward(") == 1
    for package in ("objectives", "models", "training", "algorithms", "envs"):
        assert f"sipo_trl.{package}" not in source
