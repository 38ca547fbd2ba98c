"""A football team that learns to score."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, get_args

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.cores import all_cores
from sipo_trl.envs.football.matches import RESET, START, STEP, Matches, layout
from sipo_trl.envs.football.players import PLAY, RECORDED, Players, play_layout
from sipo_trl.envs.football.report import report
from sipo_trl.envs.football.scenario import HORIZON, SCENARIOS
from sipo_trl.envs.football.specs import Diversity, diversity_size, set_football_specs
from sipo_trl.envs.noise import counter_uniform
from sipo_trl.envs.workers import Handler, WorkerPool
from sipo_trl.envs.workers.network import Layer
from sipo_trl.envs.workers.process import Layout

SEEDS, NOISE = range(2)
TRIES = 3
FAILED = (
    f"The football engine failed at the start of {TRIES} episodes in a row: run `make football` "
    "again, which also tests it."
)


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
        self._options = {"scenario": scenario, "frame_skip": frame_skip, "practice": practice}
        self._workers, self._timeout = workers or all_cores(), timeout
        self._hire(Matches, {})
        self._lost = torch.zeros(count, dtype=torch.bool)
        self._set_seed(seed)

    def _hire(self, handler: type[Handler], more: Layout, **options: Any) -> None:
        """Starts the workers, and with them the arrays."""
        match = layout(self.agents)
        self.pool = WorkerPool(
            handler,
            copies=self.batch_size.numel(),
            workers=self._workers,
            layout={**match, **START, **more},
            options={**self._options, **options},
            timeout=self._timeout,
            roaming=True,
            progress="played" if "played" in more else None,
        )
        arrays = {name: torch.from_numpy(array) for name, array in self.pool.arrays.items()}
        # Those that are the matches, and those that only pass something on.
        self._shared = {name: arrays[name] for name in (*match, "memory") if name in arrays}
        self._passed = {name: arrays[name] for name in more if name != "memory"}

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            seed = int(torch.randint(2**31, ()))
        self.start_seed = torch.full_like(self.start_seed, seed)
        self.episode = torch.zeros_like(self.episode)
        self._announce()

    def _announce(self) -> None:
        """Tells the workers the seeds of the next episodes, which they may prepare."""
        self._shared["seed"].copy_(self._seeds(1).squeeze(-1))

    def _seeds(self, episodes: int) -> Tensor:
        """Those of each copy's next episodes [N, episodes]."""
        number = self.episode + torch.arange(episodes)
        place = (number * len(number) + torch.arange(len(number)).unsqueeze(-1)) * 2 + SEEDS
        return (counter_uniform(self.start_seed, place) * 2**31).long()

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
        return self._report().set("reward", shared["reward"].unsqueeze(-1).to(self.device).clone())

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
        raise RuntimeError(FAILED)

    def let_workers_decide(self, layers: Sequence[Layer], *, steps: int) -> None:
        """Replaces the workers by such as can :meth:`play`; the matches stay as they are.

        Args:
            layers: the team's network, as :func:`sipo_trl.models.plain_layers` describes it.
            steps: how many the copies are to be played for at a time.
        """
        state = self.get_extra_state()
        self.pool.close()
        self._hire(Players, play_layout(self.agents, steps, layers), layers=list(layers))
        self.set_extra_state({**state, "memory": self._shared["memory"]})

    def play(self, weights: Tensor, noise: Tensor) -> TensorDictBase:
        """Lets the workers play all copies with a team that they decide for, episode by episode.

        What :meth:`step` does for one step, with the same numbers for the same actions, and
        several times as little to do around the engine. :meth:`let_workers_decide` comes first.

        Args:
            weights: what the team's network has learned [P].
            noise: what is added to its scores before the best are chosen [N, T, A, 19].

        Returns:
            The steps [N, T], with ``is_init`` where an episode starts.
        """
        if not self._passed:
            raise RuntimeError("Nobody can decide yet: call let_workers_decide first.")
        passed, shared, steps = self._passed, self._shared, noise.shape[1]
        time, before = (self.clock + self.episode).squeeze(-1), shared["action"].clone()
        passed["weights"].copy_(weights)
        passed["noise"].copy_(noise)
        passed["seeds"].copy_(self._seeds(steps + 1))
        passed["acted"].fill_(-1)
        for name in ("begun", "played", "starts"):
            passed[name].zero_()
        lost = self._play_all(steps)
        self.clock = self.clock + steps
        self.episode = self.episode + passed["begun"].unsqueeze(-1)
        self._announce()

        starts = passed["starts"].clone()
        acted = passed["acted"].clone()
        earlier = torch.cat([before.unsqueeze(1), acted[:, :-1]], 1)
        time = time.unsqueeze(-1) + torch.arange(steps) + starts.cumsum(-1)
        following = {name: passed[f"next_{name}"] for name in RECORDED}
        no = torch.zeros_like(lost)
        root = {
            "observation": passed["seen"],
            "scene": passed["seen"],
            "action": earlier.masked_fill(starts.unsqueeze(-1), -1),
            "practice": following["practice"],
            **dict.fromkeys(("terminated", "truncated", "success", "lost"), no),
        }
        batch = self._reported(root, time)
        batch["agents", "action"] = acted
        batch["is_init"] = starts.unsqueeze(-1)
        batch["next"] = self._reported({**following, "action": acted, "lost": lost}, time + 1)
        batch["next", "reward"] = following["reward"].unsqueeze(-1)
        batch["next", "is_init"] = no.unsqueeze(-1)
        return batch.to(self.device).clone()

    @property
    def memory(self) -> Tensor:
        """What the agents that workers decide for remember now [N, A, H]."""
        return self._shared["memory"].clone()

    def _play_all(self, steps: int) -> Tensor:
        """Plays all copies; returns in which steps a match was lost [N, T]."""
        lost = torch.zeros(len(self.episode), steps, dtype=torch.bool)
        playing = torch.ones(len(lost), dtype=torch.bool)
        while playing.any():
            playing = torch.from_numpy(self.pool.run(PLAY, playing.numpy()))
            for copy in playing.nonzero().flatten().tolist():
                self._lose(copy, lost[copy])
        return lost

    def _lose(self, copy: int, lost: Tensor) -> None:
        """Ends an episode whose worker broke down where it stood; the next step starts another."""
        step = int(self._passed["played"][copy])
        lost[step] = True
        if lost[max(0, step - TRIES + 1) : step + 1].sum() == TRIES:
            raise RuntimeError(FAILED)
        shared = {name: array[copy] for name, array in self._shared.items()}
        passed = {name: array[copy] for name, array in self._passed.items()}
        if passed["acted"][step, 0] < 0:  # perhaps it could not even start the episode
            passed["seen"][step] = shared["observation"]
            passed["acted"][step] = 0
            passed["begun"].add_(1)
            shared["seed"].copy_(passed["seeds"][passed["begun"]])
        for name in RECORDED:
            passed[f"next_{name}"][step] = 0
        for name in ("observation", "scene"):
            passed[f"next_{name}"][step] = passed["seen"][step]
            shared[name].copy_(passed["seen"][step])
        passed["next_practice"][step] = shared["practice"]
        passed["next_truncated"][step] = True
        shared["length"].zero_()
        shared["memory"].zero_()
        passed["played"].add_(1)

    def _report(self) -> TensorDict:
        """How all copies stand."""
        # A copy, because the arrays will be written to, and the caller may write too.
        step = {**self._shared, "lost": self._lost}
        return self._reported(step, (self.clock + self.episode).squeeze(-1)).clone()

    def _reported(self, step: Mapping[str, Tensor], time: Tensor) -> TensorDict:
        """What is reported of some steps, at times [N, *] that are counted in steps and resets."""
        noise = partial(self._noise, time)
        result = report(step, agents=self.agents, diversity=self.diversity, noise=noise)
        return result.to(self.device)

    def _noise(self, time: Tensor, size: int) -> Tensor:
        """Numbers between -1 and 1, as positions are, new at every time [N, *, size]."""
        count = len(time)
        copy = torch.arange(count).view(-1, *[1] * (time.ndim - 1))
        place = (time * count + copy).unsqueeze(-1) * size + torch.arange(size)
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
