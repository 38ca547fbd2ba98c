"""A football team that learns to score."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, get_args

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.cores import all_cores
from sipo_trl.envs.football.matches import (
    ACTIONS,
    ACTIVE,
    MOST_PLAYERS,
    RESET,
    START,
    STEP,
    Matches,
    layout,
)
from sipo_trl.envs.football.scenario import HORIZON, SCENARIOS
from sipo_trl.envs.football.specs import Diversity, diversity_size, set_football_specs
from sipo_trl.envs.noise import counter_uniform
from sipo_trl.envs.workers import WorkerPool

BALL = slice(88, 94)
"""Where an observation holds position and velocity of the ball."""
SEEDS, NOISE = range(2)
TRIES = 3


class FootballEnv(EnvBase):
    """Many matches of Google Research Football, played by worker processes.

    All players of the left team but its keeper are agents: agent ``a`` always is player
    ``a + 1``. They share one reward, their mean of gfootball's ``scoring`` and ``checkpoints``, so
    that an episode that is won returns 2. The keys are ``("agents", "observation")``
    [N, A, 115] (simple115v2), ``("agents", "action")`` [N, A] (19 choices), and at the root
    ``diversity_state``, ``position`` [N, A, 2], ``ball`` [N, 3], ``reward``, ``terminated``,
    ``truncated`` (after 401 steps of the engine), ``done``, ``success`` (a goal), ``lost`` and
    ``practice``.
    After a goal the observation is that of the following kick-off, as gfootball wants it; the
    diversity state, positions and ball are those of the goal itself.

    The course of an episode depends on the seed, the copy's index, the number of the copy's
    episode and the actions alone. ``state_dict`` and ``load_state_dict`` save and restore all
    matches exactly, in the midst of play.

    If the engine crashes or hangs, its process is replaced and the match that it was playing is
    truncated where it stood and marked as ``lost``; other matches do not notice. No process
    outlives the environment.

    Args:
        scenario: one of :data:`~sipo_trl.envs.football.SCENARIOS`.

    Keyword Args:
        batch_size: number of copies [N].
        seed: decides all episodes; from torch's global generator if ``None``.
        workers: number of processes that play; one per core if ``None``.
        device: where the results go.
        frame_skip: steps of the engine per action; after the first, players go on as they do.
        diversity: what ``diversity_state`` is: ``"attackers"``: positions and velocities of the
            agents and the ball [4A + 6]; ``"full"``: an observation [115]; ``"random"``: attackers
            and as many random numbers; ``"state_action"``: attackers and one-hot actions.
        practice: the share of episodes that begin with an attack under way, nearer to the goal;
            they are marked as ``practice``, since they are not the task.
        timeout: seconds after which an engine that makes no progress counts as hanging.

    Raises:
        ImportError: if the engine is not installed.

    Examples:
        >>> env = FootballEnv(batch_size=[2], seed=0, workers=1)  # doctest: +SKIP
        >>> env.rollout(max_steps=3)["agents", "observation"].shape  # doctest: +SKIP
        torch.Size([2, 3, 3, 115])
    """

    _has_frame_skip = True  # or else TorchRL would skip frames once more

    episode: Tensor
    clock: Tensor
    start_seed: Tensor

    def __init__(
        self,
        scenario: str = "academy_3_vs_1_with_keeper",
        *,
        batch_size: Sequence[int],
        seed: int | None = None,
        workers: int | None = None,
        device: torch.device | str | None = None,
        frame_skip: int = 1,
        diversity: Diversity = "attackers",
        practice: float = 0.0,
        timeout: float = 60.0,
    ) -> None:
        shape = torch.Size(batch_size)
        _check(scenario, shape, frame_skip, diversity, practice)
        super().__init__(batch_size=shape, device=torch.device(device or "cpu"))
        self.scenario, self.frame_skip, self.diversity = scenario, frame_skip, diversity
        self.agents = SCENARIOS[scenario].agents
        self.horizon = -(-HORIZON // frame_skip)
        set_football_specs(
            self, agents=self.agents, diversity=diversity_size(diversity, self.agents)
        )
        count = shape.numel()
        counts = torch.zeros(count, 1, dtype=torch.int64)
        self.register_buffer("episode", counts)
        self.register_buffer("clock", counts.clone())
        self.register_buffer("start_seed", counts[0, 0].clone())
        self.pool = WorkerPool(
            Matches,
            copies=count,
            workers=workers or all_cores(),
            layout={**layout(self.agents), **START},
            options={"scenario": scenario, "frame_skip": frame_skip, "practice": practice},
            timeout=timeout,
            roaming=True,
        )
        self._shared = {
            name: torch.from_numpy(self.pool.arrays[name]) for name in layout(self.agents)
        }
        self._lost = torch.zeros(count, dtype=torch.bool)
        self._players = torch.eye(MOST_PLAYERS)[1 : 1 + self.agents]
        self._set_seed(seed)

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            seed = int(torch.randint(2**31, ()))
        self.start_seed = torch.full_like(self.start_seed, seed)
        self.episode = torch.zeros_like(self.episode)
        self._announce()

    def _announce(self) -> None:
        """Tells the workers the seeds of the next episodes, which they may prepare."""
        count = len(self.episode)
        place = (self.episode.squeeze(-1) * count + torch.arange(count)) * 2 + SEEDS
        self._shared["seed"].copy_(counter_uniform(self.start_seed, place) * 2**31)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        shared, moving = self._shared, self._shared["length"] > 0
        # TorchRL marks with "_step" which copies move, where others have finished.
        chosen = tensordict.get("_step", None)
        if chosen is not None:
            moving &= chosen.flatten().cpu()
        action = tensordict.get(("agents", "action")).cpu()
        shared["action"].copy_(torch.where(moving.unsqueeze(-1), action, shared["action"]))
        shared["reward"].zero_()
        failed = torch.from_numpy(self.pool.run(STEP, moving.numpy()))
        self.clock = self.clock + moving.unsqueeze(-1)
        self._lost = torch.where(moving, failed, self._lost)
        shared["truncated"].logical_or_(failed)
        shared["length"].masked_fill_(failed, 0)
        return self._report(reward=shared["reward"].unsqueeze(-1))

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        starting = torch.ones(len(self.episode), dtype=torch.bool)
        if chosen is not None:
            starting = chosen.flatten().cpu()
        self._shared["action"].masked_fill_(starting.unsqueeze(-1), -1)
        self._lost = self._lost & ~starting
        for _attempt in range(TRIES):
            failed = torch.from_numpy(self.pool.run(RESET, starting.numpy()))
            self.episode = self.episode + starting.unsqueeze(-1)
            self._announce()
            starting = failed
            if not failed.any():
                return self._report()
        raise RuntimeError(
            f"The football engine failed at the start of {TRIES} episodes in a row: run "
            "`make football` again, which also tests it."
        )

    def _report(self, **more: Tensor) -> TensorDictBase:
        """All outputs, from the shared arrays."""
        shared, agents = self._shared, self.agents
        scene = shared["scene"]
        observation = shared["observation"].unsqueeze(1).repeat(1, agents, 1)
        observation[..., ACTIVE] = self._players
        terminated, truncated = shared["terminated"], shared["truncated"] > shared["terminated"]
        flags = {
            "terminated": terminated,
            "truncated": truncated,
            "done": terminated | truncated,
            "success": shared["success"] & ~self._lost,
            "lost": self._lost,
            "practice": shared["practice"],
        }
        report = {
            "agents": TensorDict({"observation": observation}, observation.shape[:-1]),
            "diversity_state": self._diversity_state(scene),
            "position": scene[:, 2 : 2 + 2 * agents].unflatten(-1, (agents, 2)),
            "ball": scene[:, BALL][:, :3],
            **{name: flag.unsqueeze(-1) for name, flag in flags.items()},
            **more,
        }
        # A copy, because the arrays will be written to, and the caller may write too.
        return TensorDict(report, batch_size=self.batch_size).to(self.device).clone()

    def _diversity_state(self, scene: Tensor) -> Tensor:
        if self.diversity == "full":
            return scene
        field, size = slice(2, 2 + 2 * self.agents), 2 * MOST_PLAYERS
        velocity = slice(field.start + size, field.stop + size)
        state = torch.cat([scene[:, part] for part in (field, velocity, BALL)], -1)
        if self.diversity == "random":
            return torch.cat([state, self._noise(state.shape[-1])], -1)
        if self.diversity == "state_action":
            choices = torch.arange(len(ACTIONS))
            taken = self._shared["action"].unsqueeze(-1) == choices
            return torch.cat([state, taken.flatten(1).float()], -1)
        return state

    def _noise(self, size: int) -> Tensor:
        """Numbers between -1 and 1, as positions are, new at every step [N, size]."""
        count = len(self.clock)
        time = self.clock + self.episode  # grows with every step and every reset
        place = (time * count + torch.arange(count).unsqueeze(-1)) * size + torch.arange(size)
        return (2 * counter_uniform(self.start_seed, 2 * place + NOISE) - 1).float()

    def get_extra_state(self) -> dict[str, Tensor]:
        """The matches, as they stand."""
        state = {name: array.clone() for name, array in self._shared.items() if name != "state"}
        used = torch.arange(self._shared["state"].shape[-1]) < state["length"].unsqueeze(-1)
        return {**state, "state": self._shared["state"][used], "lost": self._lost.clone()}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Goes on with the matches that another environment has saved."""
        for name, array in self._shared.items():
            if name != "state":
                array.copy_(state[name])
        used = torch.arange(self._shared["state"].shape[-1]) < state["length"].unsqueeze(-1)
        self._shared["state"][used] = state["state"]
        self._lost = state["lost"].clone()

    def close(self, **options: Any) -> None:
        """Ends the worker processes."""
        self.pool.close()
        super().close(**options)


def _check(
    scenario: str, shape: torch.Size, frame_skip: int, diversity: str, practice: float
) -> None:
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario is {scenario!r}: choose from {', '.join(SCENARIOS)}.")
    if diversity not in get_args(Diversity):
        choices = ", ".join(get_args(Diversity))
        raise ValueError(f"diversity is {diversity!r}: choose from {choices}.")
    if len(shape) != 1:
        raise ValueError(f"batch_size is {list(shape)}: give the number of copies, as [N].")
    if frame_skip < 1:
        raise ValueError(f"frame_skip is {frame_skip}: give the number of steps, at least 1.")
    if not 0 <= practice <= 1:
        raise ValueError(f"practice is {practice}: give a share of the episodes, from 0 to 1.")
    if find_spec("gfootball_engine") is None:
        raise ImportError("gfootball is not installed: run `make football`, which compiles it.")
