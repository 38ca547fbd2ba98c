"""StarCraft battles as a TorchRL environment."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, Composite, TensorSpec, Unbounded
from torchrl.envs import EnvBase

from sipo_trl.envs.smac.backend import BattleBackend
from sipo_trl.envs.smac.battle_map import MapSpec, load_map
from sipo_trl.envs.smac.embedded import EmbeddedBackend
from sipo_trl.envs.smac.features import Features, Layout
from sipo_trl.envs.smac.sc2 import SC2Backend
from sipo_trl.envs.smac.view import View
from sipo_trl.envs.specs import flag_spec, set_reward_and_ends

Backend = Literal["embedded", "sc2"]


class SMACEnv(EnvBase):
    """Thousands of battles in which each agent commands one unit, as in SMAC.

    Keys and values are SMAC's, under the names of TorchRL's SMAC wrapper. For the agents:
    ``("agents", "observation")`` [B, A, F], ``("agents", "action_mask")`` [B, A, actions],
    ``("agents", "action")`` [B, A] (a number), ``("agents", "alive")`` [B, A, 1] and
    ``("agents", "state")`` [B, A, S], each agent's view of the whole, for critics. At the root:
    ``state`` [B, S], SMAC's global state; ``reward``, at most 20 in an episode; ``terminated``
    where a side has no unit left, ``truncated`` at the map's limit or where the battle is
    ``lost``, because a game broke down, ``done``; ``success`` where the battle is won; ``info``
    with ``battle_won``, ``episode_limit``, ``dead_allies`` and ``dead_enemies``;
    ``diversity_state``, the allies' part of the state; and for whoever looks on ``position``
    [B, A, 2], ``alive`` [B, A], ``enemy_position`` [B, E, 2], ``enemy_alive`` [B, E].

    Dead agents can do nothing but no-op. Illegal actions are not refused: the unit makes of them
    what it can.

    Args:
        map_name: which battle: ``"2m_vs_1z"``, ``"2c_vs_64zg"``, ``"3m"`` or ``"2s3z"``.

    Keyword Args:
        batch_size: number of copies [B].
        backend: what plays: ``"embedded"``, our own engine, whose results are not SMAC's, or
            ``"sc2"``, the game itself.
        seed: decides all that is drawn; from torch's global generator if ``None``.
        device: where the copies live.
        layout: of observations: ``"smac"``, or ``"sipo"`` with more about the agent itself.
        options: of the backend: with ``"sc2"``, the ``version``, ``replay_dir`` and ``timeout`` of
            :class:`~sipo_trl.envs.smac.sc2.SC2Backend`.

    Examples:
        >>> env = SMACEnv("2m_vs_1z", batch_size=[64], seed=0)
        >>> rollout = env.rollout(max_steps=10)
        >>> rollout["agents", "observation"].shape, rollout["state"].shape
        (torch.Size([64, 10, 2, 16]), torch.Size([64, 10, 26]))
        >>> snapshot = env.state_dict()  # restores the battles in their midst
        >>> _ = SMACEnv("2m_vs_1z", batch_size=[64]).load_state_dict(snapshot)
    """

    step_count: Tensor

    def __init__(
        self,
        map_name: str = "2m_vs_1z",
        *,
        batch_size: Sequence[int],
        backend: Backend = "embedded",
        seed: int | None = None,
        device: torch.device | str | None = None,
        layout: Layout = "smac",
        **options: Any,
    ) -> None:
        shape = torch.Size(batch_size)
        if len(shape) != 1:
            raise ValueError(f"batch_size is {list(shape)}: give the number of copies, as [N].")
        super().__init__(batch_size=shape, device=device)
        self.spec = load_map(map_name)
        self.battles = _make_backend(backend, self.spec, copies=shape[0], device=device, **options)
        self.features = Features(
            self.spec, layout=layout, walkable=self.battles.walkable(), device=device
        )
        count = torch.zeros(*shape, 1, dtype=torch.int64, device=device)
        self.register_buffer("step_count", count)
        self._make_specs()
        self._set_seed(seed)

    def _make_specs(self) -> None:
        shape, spec, sizes = self.batch_size, self.spec, self.features.sizes
        agents = (*shape, spec.num_allies)
        choice = Categorical(spec.num_actions, shape=agents, dtype=torch.int64)
        flag = flag_spec(self)
        count = Unbounded((*shape, 1), dtype=torch.int64)
        entries: dict[str, TensorSpec] = {
            "agents": Composite(
                observation=Unbounded((*agents, sizes["observation"])),
                state=Unbounded((*agents, sizes["agent_state"])),
                action_mask=Categorical(2, shape=(*agents, spec.num_actions), dtype=torch.bool),
                alive=Categorical(2, shape=(*agents, 1), dtype=torch.bool),
                shape=agents,
            ),
            "info": Composite(
                battle_won=flag, episode_limit=flag, dead_allies=count, dead_enemies=count,
                shape=shape,
            ),
            "state": Unbounded((*shape, sizes["state"])),
            "diversity_state": Unbounded((*shape, sizes["diversity_state"])),
            "success": flag,
            "lost": flag,
        }  # fmt: skip
        for name, number in {"": spec.num_allies, "enemy_": spec.num_enemies}.items():
            entries[f"{name}position"] = Unbounded((*shape, number, 2))
            entries[f"{name}alive"] = Categorical(2, shape=(*shape, number), dtype=torch.bool)
        self.action_spec = Composite(agents=Composite(action=choice, shape=agents), shape=shape)
        self.observation_spec = Composite(entries, shape=shape)
        set_reward_and_ends(self)

    def _set_seed(self, seed: int | None) -> None:
        self.battles.set_seed(int(torch.randint(2**31, ())) if seed is None else seed)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        if reset is None:
            self.step_count = torch.zeros_like(self.step_count)
        else:
            reset = reset.view(self.step_count.shape)
            self.step_count = self.step_count.masked_fill(reset, 0)
        self.battles.start(reset)
        return self._report(self.features(self.battles.snapshot()))

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        # TorchRL marks with "_step" which copies move, where others have finished.
        moving = tensordict.get("_step", None)
        moving = None if moving is None else moving.view(self.step_count.shape)
        before = self.features(self.battles.snapshot())
        self.battles.play(tensordict.get(("agents", "action")), moving)
        self.step_count = self.step_count + (1 if moving is None else moving)
        after = self.features(self.battles.snapshot())
        reward = self.features.reward(before, after)
        if moving is not None:
            reward = reward.masked_fill(~moving, 0)
        return self._report(after).set("reward", reward)

    def _report(self, view: View) -> TensorDictBase:
        """All outputs but the reward, from where the battles stand."""
        snapshot = view.snapshot
        self.full_action_spec["agents", "action"].update_mask(view.action_mask)
        terminated = view.ended
        lost = self.battles.lost()
        late = (self.step_count >= self.spec.episode_limit) & ~terminated
        truncated = late | lost
        agents = {
            "observation": view.observation,
            "state": view.agent_state,
            "action_mask": view.action_mask,
            "alive": view.alive.unsqueeze(-1),
        }
        info = {
            "battle_won": view.won,
            "episode_limit": late,
            "dead_allies": (~view.alive).sum(-1, keepdim=True),
            "dead_enemies": (~view.enemies_alive).sum(-1, keepdim=True),
        }
        shape, device = self.batch_size, self.device
        group = torch.Size((*shape, self.spec.num_allies))
        report = {
            "agents": TensorDict(agents, batch_size=group, device=device),
            "info": TensorDict(info, batch_size=shape, device=device),
            "state": view.state,
            "diversity_state": view.diversity_state,
            # Copies, because the caller may write to what it gets.
            "success": view.won.clone(),
            "lost": lost,
            "position": snapshot.allies.position.clone(),
            "alive": view.alive.clone(),
            "enemy_position": snapshot.enemies.position.clone(),
            "enemy_alive": view.enemies_alive,
            "terminated": terminated,
            "truncated": truncated,
            "done": terminated | truncated,
        }
        return TensorDict(report, batch_size=shape, device=device)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Ends the battles for good."""
        self.battles.close()
        super().close(raise_if_closed=raise_if_closed)


def _make_backend(name: str, spec: MapSpec, **options: Any) -> BattleBackend:
    backends = {"embedded": EmbeddedBackend, "sc2": SC2Backend}
    if name not in backends:
        raise ValueError(f"backend is {name!r}: choose from {', '.join(backends)}.")
    return backends[name](spec, **options)
