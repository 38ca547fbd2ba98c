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

# Everything about some copies at one time, by name [n, *].
Moment = dict[str, Tensor]
Decide = Callable[[Tensor, Tensor], Mapping[str, Tensor]]
_MOTION = ("qpos", "qvel", "warmstart", "sensors")
_MOMENT = (
    *_MOTION, "observation", "torque", "terminated", "step_count", "episode", "copy_index"
)  # fmt: skip


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
    copy_index: Tensor
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
        copies = torch.arange(count, device=self.device).unsqueeze(-1)
        self.register_buffer("copy_index", copies, persistent=False)
        self.register_buffer("start_seed", counts[0, 0].clone())

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            seed = int(torch.randint(2**31, ()))
        self.start_seed = torch.full_like(self.start_seed, seed)
        self.episode = torch.zeros_like(self.episode)

    def play(self, decide: Decide, noise: Tensor) -> TensorDictBase:
        """Makes several steps, and starts finished episodes anew.

        What a collector gets of :meth:`step_and_maybe_reset`, with the same bits, without most of
        what TorchRL does around each step, which is a fifth of all the time.

        Args:
            decide: chooses for observations [N, O], with random numbers [N, *], what to do:
                ``action`` [N, nu], and whatever else is to be kept of the choice.
            noise: random numbers for all choices [T, N, *].

        Returns:
            The steps [N, T].

        Examples:
            >>> from sipo_trl.envs import HumanoidEnv
            >>> env = HumanoidEnv(batch_size=[4], seed=0)
            >>> batch = env.play(lambda seen, noise: {"action": 0.1 * noise}, torch.randn(3, 4, 21))
            >>> batch["next", "observation"].shape
            torch.Size([4, 3, 108])
        """
        before, choices, rewards, after = [], [], [], []
        moment = self._with_new_episodes(self._moment())
        choice = decide(moment["observation"], noise[0])
        for numbers in noise.roll(-1, 0):  # nobody takes the choice after the last
            before.append({name: moment[name] for name in self._reported})
            choices.append(choice)
            motion = self._simulate(moment, choice["action"])
            end, reward, moment, choice = self.turn(
                decide, moment, choice["action"], motion, numbers
            )
            rewards.append(reward)
            after.append({name: end[name] for name in self._reported})
        self._buffers.update(end)
        batch = self._report(_along_time(before)).update(_along_time(choices))
        batch["next"] = self._report(_along_time(after), reward=torch.stack(rewards, 1))
        return batch

    def turn(
        self, decide: Decide, moment: Moment, action: Tensor, motion: Motion, noise: Tensor
    ) -> tuple[Moment, Tensor, Moment, Mapping[str, Tensor]]:
        """All that is between the physics of two steps, for those who compile it.

        Args:
            decide: see :meth:`play`.
            moment: the copies before a step.
            action: what they did [N, nu].
            motion: what the simulator made of it.
            noise: random numbers for the next choice [N, *].

        Returns:
            The copies after the step, what it is worth [N, 1], the copies with new episodes where
            one has ended, and what they choose.
        """
        after, reward = self._judge(moment, action, motion)
        following = self._with_new_episodes(after)
        return after, reward, following, decide(following["observation"], noise)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        moment, action = self._moment(), tensordict.get("action")
        after, reward = self._judge(moment, action, self._simulate(moment, action))
        moving = tensordict.get("_step", None)
        if moving is not None:  # TorchRL marks which copies move, where others have finished
            moving = moving.view(self.step_count.shape)
            after = {name: torch.where(moving, after[name], moment[name]) for name in after}
            reward = reward.masked_fill(~moving, 0)
        self._buffers.update(after)
        return self._report_now(reward=reward)

    def _moment(self) -> Moment:
        return {name: self._buffers[name] for name in _MOMENT}

    def _simulate(self, moment: Moment, action: Tensor) -> Motion:
        return self.simulator.step(_motion(moment), self._bounded(action))

    def _bounded(self, action: Tensor) -> Tensor:
        return action.clamp(-self.task.action_bound, self.task.action_bound)

    def _judge(self, moment: Moment, action: Tensor, motion: Motion) -> tuple[Moment, Tensor]:
        """The copies after a step, and what it is worth [N, 1]."""
        before = _motion(moment)
        motion, broken = _repair(before, motion)
        outcome = self.task.step(before, motion, self._bounded(action))
        after = {
            **moment,
            **{name: getattr(motion, name) for name in _MOTION},
            "observation": outcome.observation,
            "torque": outcome.torque,
            "terminated": outcome.terminated | broken,
            "step_count": moment["step_count"] + 1,
        }
        return after, outcome.reward.masked_fill(broken, self.task.broken_reward)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        reset = None if tensordict is None else tensordict.get("_reset", None)
        if reset is None:
            reset = torch.ones_like(self.terminated)
        self._buffers.update(self._with_started(self._moment(), reset))
        return self._report_now()

    def _with_new_episodes(self, moment: Moment) -> Moment:
        """The next episodes of copies that have finished one, or not begun any."""
        finished = moment["terminated"] | (moment["step_count"] >= self.horizon)
        return self._with_started(moment, finished | (moment["episode"] == 0))

    def _with_started(self, moment: Moment, starting: Tensor) -> Moment:
        copies, episode = moment["copy_index"], moment["episode"]
        if torch.compiler.is_compiling():  # its shapes cannot depend on how many there are
            new = self._started(copies, episode)
            return moment | {name: torch.where(starting, new[name], moment[name]) for name in new}
        # Few copies end at a time: to start those alone is worth it.
        rows = starting.flatten().nonzero().squeeze(-1)
        if not len(rows):
            return moment
        new = self._started(copies[rows], episode[rows])
        return moment | {name: moment[name].index_copy(0, rows, new[name]) for name in new}

    def _started(self, copies: Tensor, episode: Tensor) -> Moment:
        """Copies [n, 1] that begin their next episodes after so many [n, 1]."""
        # Each episode of each copy has its own numbers.
        number = episode * self.batch_size.numel() + copies
        columns = torch.arange(self.task.noise_size, device=self.device)
        noise = counter_uniform(self.start_seed, number * self.task.noise_size + columns)
        qpos, qvel = self.task.start(noise.to(self.qpos.dtype))
        motion = self.simulator.begin(qpos, qvel)
        observation, torque = self.task.observe_start(motion)
        return {
            **{name: getattr(motion, name) for name in _MOTION},
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


def _motion(moment: Moment) -> Motion:
    return Motion(*(moment[name] for name in _MOTION))


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
