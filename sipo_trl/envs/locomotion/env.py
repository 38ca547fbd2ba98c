"""The environment around a task and a simulator."""

from collections.abc import Callable, Mapping, Sequence

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.envs import EnvBase

from sipo_trl.envs.locomotion.simulator import Motion, Simulator
from sipo_trl.envs.locomotion.specs import set_motion_specs
from sipo_trl.envs.locomotion.task import Task
from sipo_trl.envs.noise import counter_uniform

# Several times what a humanoid's arm reaches when it is flung about: faster is no motion any more.
MAX_SPEED = 300.0


class LocomotionEnv(EnvBase):
    """Batch-locked environment whose copies each move one body.

    Everything that it reports follows from its buffers, which are replaced at each step, never
    written in place: ``state_dict`` and ``load_state_dict`` save and restore it exactly, and a
    ``state_dict`` keeps its moment while the environment goes on. The start of an episode is
    drawn from the seed, the copy's index and the number of the copy's episode alone.

    The keys are ``observation``, ``diversity_state`` (a part of the observation), ``torque`` (of
    each actuated joint, in Nm), ``reward``, ``terminated``, ``truncated`` (after ``horizon``
    steps), ``done`` and ``success`` (the last step was reached without termination). If the
    physics of a copy breaks down, its episode is terminated in its last sound state; other copies
    do not notice.

    Args:
        task: what the bodies are to do.
        simulator: what moves them; of the task's model.

    Keyword Args:
        batch_size: number of copies [N].
        seed: decides the start of every episode; from torch's global generator if ``None``.
        horizon: steps after which an episode is truncated.
    """

    # The buffers that all outputs are made of.
    _reported: tuple[str, ...] = ("observation", "torque", "terminated", "step_count")

    qpos: Tensor
    qvel: Tensor
    warmstart: Tensor
    sensors: Tensor
    observation: Tensor
    torque: Tensor
    terminated: Tensor
    step_count: Tensor
    episode: Tensor
    start_seed: Tensor

    def __init__(
        self,
        task: Task,
        simulator: Simulator,
        *,
        batch_size: Sequence[int],
        seed: int | None = None,
        horizon: int = 1000,
    ) -> None:
        shape, device = torch.Size(batch_size), simulator.device
        if len(shape) != 1:
            raise ValueError(f"batch_size is {list(shape)}: give the number of copies, as [N].")
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}: give the number of steps, at least 1.")
        super().__init__(batch_size=shape, device=device)
        self.task, self.simulator, self.horizon = task, simulator, horizon
        self._make_specs()
        self._make_buffers()
        self._set_seed(seed)

    def _make_specs(self) -> None:
        task = self.task
        set_motion_specs(
            self,
            observations=task.observation_size,
            diversity=self._diversity_size,
            actuators=task.model.nu,
            action_bound=task.action_bound,
        )

    @property
    def _diversity_size(self) -> int:
        task = self.task
        return len(range(*task.diversity_columns.indices(task.observation_size)))

    def _make_buffers(self) -> None:
        model, count = self.task.model, self.batch_size.numel()
        exact = {"dtype": self.simulator.dtype, "device": self.device}
        self.register_buffer("qpos", torch.zeros(count, model.nq, **exact))
        self.register_buffer("qvel", torch.zeros(count, model.nv, **exact))
        self.register_buffer("warmstart", torch.zeros(count, model.nv, **exact))
        self.register_buffer("sensors", torch.zeros(count, self.simulator.num_sensors, **exact))
        size = self.task.observation_size
        self.register_buffer("observation", torch.zeros(count, size, device=self.device))
        self.register_buffer("torque", torch.zeros(count, model.nu, device=self.device))
        flags = torch.zeros(count, 1, dtype=torch.bool, device=self.device)
        self.register_buffer("terminated", flags)
        counts = torch.zeros(count, 1, dtype=torch.int64, device=self.device)
        self.register_buffer("step_count", counts)
        self.register_buffer("episode", counts.clone())
        self.register_buffer("start_seed", counts[0, 0].clone())

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            seed = int(torch.randint(2**31, ()))
        self.start_seed = torch.full_like(self.start_seed, seed)
        self.episode = torch.zeros_like(self.episode)

    def play(self, decide: Callable[[Tensor], Tensor], steps: int) -> TensorDictBase:
        """Makes several steps, and starts finished episodes anew.

        What a collector gets of :meth:`step_and_maybe_reset`, with the same bits, without most of
        what TorchRL does around each step, which is a fifth of all the time.

        Args:
            decide: chooses actions [N, nu] for observations [N, O].
            steps: how many, T.

        Returns:
            The steps [N, T].

        Examples:
            >>> from sipo_trl.envs import HumanoidEnv
            >>> env = HumanoidEnv(batch_size=[4], seed=0)
            >>> batch = env.play(lambda seen: 0.1 * seen[:, -21:], steps=3)
            >>> batch["next", "observation"].shape
            torch.Size([4, 3, 108])
        """
        actions, rewards, before, after = [], [], [], []
        for _ in range(steps):
            self._start_finished()
            before.append({name: self._buffers[name] for name in self._reported})
            actions.append(decide(self.observation))
            rewards.append(self._advance(actions[-1]))
            after.append({name: self._buffers[name] for name in self._reported})
        batch = self._report(_along_time(before))
        batch["action"] = torch.stack(actions, 1)
        batch["next"] = self._report(_along_time(after), reward=torch.stack(rewards, 1))
        return batch

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        # TorchRL marks with "_step" which copies move, where others have finished.
        reward = self._advance(tensordict.get("action"), tensordict.get("_step", None))
        return self._report_now(reward=reward)

    def _advance(self, action: Tensor, moving: Tensor | None = None) -> Tensor:
        """Moves the copies, or the marked ones; returns what that is worth [N, 1]."""
        bound = self.task.action_bound
        action = action.clamp(-bound, bound)
        before = Motion(self.qpos, self.qvel, self.warmstart, self.sensors)
        after, broken = _repair(before, self.simulator.step(before, action))
        outcome = self.task.step(before, after, action)
        reward = outcome.reward.masked_fill(broken, self.task.broken_reward)
        new = {
            **vars(after),
            "observation": outcome.observation,
            "torque": outcome.torque,
            "terminated": outcome.terminated | broken,
            "step_count": self.step_count + 1,
        }
        if moving is not None:
            moving = moving.view(self.step_count.shape)
            new = {name: torch.where(moving, new[name], self._buffers[name]) for name in new}
            reward = reward.masked_fill(~moving, 0)
        self._buffers.update(new)
        return reward

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        if reset is None:
            self._buffers.update(self._start(torch.arange(len(self.qpos), device=self.device)))
        else:
            self._start_marked(reset)
        return self._report_now()

    def _start_finished(self) -> None:
        """Starts the next episodes of copies that have finished one, or not begun any."""
        finished = self.terminated | (self.step_count >= self.horizon) | (self.episode == 0)
        self._start_marked(finished)

    def _start_marked(self, starting: Tensor) -> None:
        # Few copies end at a time: to start those alone is worth it.
        copies = starting.flatten().nonzero().squeeze(-1)
        if len(copies):
            for name, value in self._start(copies).items():
                self._buffers[name] = self._buffers[name].index_copy(0, copies, value)

    def _start(self, copies: Tensor) -> dict[str, Tensor]:
        """The buffers of some copies [n] that begin their next episodes."""
        episode = self.episode[copies]
        # Each episode of each copy has its own numbers.
        number = episode * len(self.episode) + copies.unsqueeze(-1)
        columns = torch.arange(self.task.noise_size, device=self.device)
        noise = counter_uniform(self.start_seed, number * self.task.noise_size + columns)
        qpos, qvel = self.task.start(noise.to(self.qpos.dtype))
        motion = self.simulator.begin(qpos, qvel)
        observation, torque = self.task.observe_start(motion)
        return {
            **vars(motion),
            "observation": observation,
            "torque": torque,
            "terminated": torch.zeros_like(episode, dtype=torch.bool),
            "step_count": torch.zeros_like(episode),
            "episode": episode + 1,
        }

    def _report_now(self, **more: Tensor) -> TensorDictBase:
        # Copies, because the caller may write to what it gets.
        return self._report({name: self._buffers[name].clone() for name in self._reported}, **more)

    def _report(self, moments: Mapping[str, Tensor], **more: Tensor) -> TensorDictBase:
        """All outputs, from the buffers of one moment, or of several [N, T]."""
        observation, terminated = moments["observation"], moments["terminated"]
        truncated = moments["step_count"] >= self.horizon
        report = {
            "observation": observation,
            "diversity_state": observation[..., self.task.diversity_columns].clone(),
            "torque": moments["torque"],
            "terminated": terminated,
            "truncated": truncated,
            "done": terminated | truncated,
            "success": truncated > terminated,
            **more,
        }
        return TensorDict(report, batch_size=observation.shape[:-1], device=self.device)


def _along_time(moments: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([moment[name] for moment in moments], 1) for name in moments[0]}


def _repair(before: Motion, after: Motion) -> tuple[Motion, Tensor]:
    """Puts copies whose physics broke down back; also returns which these are [N, 1]."""
    # A comparison with what is not a number is false.
    slow = after.qvel.abs().amax(-1, True) < MAX_SPEED
    broken = (slow & after.qpos.sum(-1, True).isfinite()).logical_not_()
    motion = Motion(
        torch.where(broken, before.qpos, after.qpos),
        torch.where(broken, before.qvel, after.qvel),
        after.warmstart.masked_fill(broken, 0),
        after.sensors.masked_fill(broken, 0),
    )
    return motion, broken
