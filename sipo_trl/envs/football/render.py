"""Films of matches, by the engine's own renderer."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torchrl.envs import EnvBase, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type

from sipo_trl.envs.episodes import remembering
from sipo_trl.envs.football.env import FootballEnv
from sipo_trl.envs.football.pictures import Pictures, layout
from sipo_trl.envs.workers import WorkerPool

STEP_MILLISECONDS = 100
PATIENCE = 300.0  # without a graphics card the stadium takes its time


@torch.no_grad()
def film_match(
    env: EnvBase,
    policy: TensorDictModuleBase,
    path: Path | str,
    *,
    steps: int = 120,
    every: int = 2,
) -> int:
    """Play a match with a policy's most likely actions and keep it as an animated picture.

    Args:
        env: one copy, ``batch_size=[1]``, of a :class:`FootballEnv`; may be transformed.
        policy: what acts, for example ``Archive.open(path)[0].load_policy()``.
        path: where the picture goes, as ``.webp``.
        steps: at most so many steps are shown.
        every: how many steps pass between two pictures; it is played at the speed of life.

    Returns:
        The number of steps that are shown.

    Raises:
        RuntimeError: if the engine cannot draw here.
    """
    base = env.base_env if isinstance(env, TransformedEnv) else env
    if not isinstance(base, FootballEnv) or base.batch_size != (1,):
        raise ValueError(
            f"env is {type(base).__name__} of batch size {list(base.batch_size)}: give one copy, "
            "[1], of a FootballEnv."
        )
    arrays, states = base.pool.arrays, []

    def watched(data: TensorDictBase) -> TensorDictBase:
        states.append(arrays["state"][0, : arrays["length"][0]].copy())
        return policy(data)

    with set_exploration_type(ExplorationType.DETERMINISTIC):
        remembering(env, policy).rollout(steps, watched)
    pictures = [Image.fromarray(picture) for picture in _draw(base.scenario, states[::every])]
    duration = STEP_MILLISECONDS * base.frame_skip * every
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=duration, loop=0)
    return len(states)


def _draw(scenario: str, states: list[np.ndarray]) -> list[np.ndarray]:
    """Pictures [H, W, 3] of saved matches."""
    pool = WorkerPool(
        Pictures,
        copies=1,
        workers=1,
        layout=layout(),
        options={"scenario": scenario},
        timeout=PATIENCE,
    )
    pictures = []
    for state in states:
        pool.arrays["length"][0] = len(state)
        pool.arrays["state"][0, : len(state)] = state
        if pool.run(0, np.ones(1, dtype=bool)).any():
            raise RuntimeError("the football engine's renderer broke down")
        pictures.append(pool.arrays["picture"][0].copy())
    pool.close()
    return pictures
