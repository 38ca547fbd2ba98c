"""How a task's settings are made."""

from types import SimpleNamespace


def parse_env_cfg(task_name, device="cuda:0", num_envs=None):
    """The humanoid's, as far as they matter here."""
    assert task_name == "Isaac-Humanoid-Direct-v0"
    return SimpleNamespace(
        device=device,
        num_envs=num_envs,
        sim=SimpleNamespace(dt=1 / 120),
        decimation=2,
        episode_length_s=15.0,
    )
