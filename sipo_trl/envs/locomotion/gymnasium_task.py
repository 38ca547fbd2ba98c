"""Gymnasium's definition of bodies that run."""

import math
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import mujoco
import torch
from torch import Tensor

from sipo_trl.envs.locomotion.simulator import Motion
from sipo_trl.envs.locomotion.task import Outcome, Task


@dataclass(frozen=True, kw_only=True)
class Running:
    """What distinguishes one of gymnasium's running bodies from another.

    Attributes:
        asset: file of the body in gymnasium.
        frame_skip: physics steps per action.
        hidden_positions: how many of the first positions are not observed.
        forward: reward per m/s.
        control: cost of actions, per square.
        healthy: reward of every healthy step.
        height: least and greatest healthy height; the body is always healthy if ``None``.
        height_column: where the height stands among the positions.
        angle: greatest healthy inclination of a flat body, which stands after the height.
        contact: cost of external forces, per square.
        contact_bound: greatest magnitude of an observed and paid external force.
        contact_most: the most that external forces cost.
        velocity_bound: greatest magnitude of an observed velocity.
        noise: how far from rest episodes start.
        normal_velocities: whether velocities start normal rather than uniform.
        arrays: inner quantities of the simulation that are needed, by the names of ``MjData``.
        centre: whether the whole body's centre of mass has to run, rather than the torso.
        observed: those of the arrays that are observed, and how many of the first entries of each
            are not: the world's, or the torso's.
        diversity_size: how many of the first observations tell policies apart; all if ``None``.
    """

    asset: str
    frame_skip: int
    hidden_positions: int = 1
    forward: float = 1.0
    control: float
    healthy: float = 0.0
    height: tuple[float, float] | None = None
    height_column: int = 1
    angle: float | None = None
    contact: float = 0.0
    contact_bound: float = math.inf
    contact_most: float = math.inf
    velocity_bound: float = math.inf
    noise: float
    normal_velocities: bool = False
    arrays: tuple[str, ...] = ()
    centre: bool = False
    observed: tuple[tuple[str, int], ...] = ()
    diversity_size: int | None = None


# Version 5 of each.
RUNNING = {
    "halfcheetah": Running(
        asset="half_cheetah.xml", frame_skip=5, control=0.1, noise=0.1, normal_velocities=True
    ),
    "walker2d": Running(
        asset="walker2d_v5.xml",
        frame_skip=4,
        control=1e-3,
        healthy=1.0,
        height=(0.8, 2.0),
        angle=1.0,
        velocity_bound=10.0,
        noise=5e-3,
    ),
    "ant": Running(
        asset="ant.xml",
        frame_skip=5,
        hidden_positions=2,
        control=0.5,
        healthy=1.0,
        height=(0.2, 1.0),
        height_column=2,
        contact=5e-4,
        contact_bound=1.0,
        noise=0.1,
        normal_velocities=True,
        arrays=("xpos", "cfrc_ext"),
        observed=(("cfrc_ext", 6),),
        diversity_size=27,
    ),
    "humanoid_v5": Running(
        asset="humanoid.xml",
        frame_skip=5,
        hidden_positions=2,
        forward=1.25,
        control=0.1,
        healthy=5.0,
        height=(1.0, 2.0),
        height_column=2,
        contact=5e-7,
        contact_most=10.0,
        noise=1e-2,
        arrays=("xipos", "cinert", "cvel", "qfrc_actuator", "cfrc_ext"),
        centre=True,
        observed=(("cinert", 10), ("cvel", 6), ("qfrc_actuator", 6), ("cfrc_ext", 6)),
        diversity_size=253,
    ),
}
"""Gymnasium's bodies by name."""


class GymnasiumTask(Task):
    """Running along the first axis, as gymnasium defines it.

    Args:
        running: which body, and what it is paid for.

    Examples:
        >>> task = GymnasiumTask(RUNNING["ant"])
        >>> task.observation_size, task.diversity_columns
        (105, slice(0, 27, None))
    """

    broken_reward = 0.0

    def __init__(self, running: Running) -> None:
        self.running = running
        self.model = model = _load(running.asset)
        self.frame_skip = running.frame_skip
        self.action_bound = float(model.actuator_ctrlrange[0, 1])
        self.noise_size = model.nq + model.nv
        self.gear = torch.tensor(model.actuator_gear[:, 0])
        self.initial = torch.tensor(model.qpos0)
        self.columns = self._array_columns()
        seen = model.nq + model.nv - running.hidden_positions
        for name, hidden in running.observed:
            seen += self.columns[name].stop - self.columns[name].start - hidden
        self.observation_size = seen
        self.diversity_columns = slice(0, running.diversity_size or self.observation_size)
        self.masses = torch.tensor(model.body_mass / model.body_mass.sum())

    def _array_columns(self) -> dict[str, slice]:
        """Where each array stands in a motion's sensors."""
        data, columns, stop = mujoco.MjData(self.model), {}, 0
        for name in self.running.arrays:
            start, stop = stop, stop + getattr(data, name).size
            columns[name] = slice(start, stop)
        return columns

    def start(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Near the model's own pose, nearly at rest."""
        place, speed = noise.split((self.model.nq, self.model.nv), -1)
        if self.running.normal_velocities:
            speed = torch.special.ndtri(speed.clamp(min=1e-12))
        else:
            speed = 2 * speed - 1
        return self.initial + self.running.noise * (2 * place - 1), self.running.noise * speed

    def observe(self, motion: Motion, action: Tensor) -> tuple[Tensor, Tensor]:
        """Positions, velocities and what else gymnasium shows of a body; the motors' torques."""
        bound = self.running.velocity_bound
        parts = [motion.qpos[:, self.running.hidden_positions :], motion.qvel.clamp(-bound, bound)]
        for name, hidden in self.running.observed:
            array = self._forces(motion) if name == "cfrc_ext" else self._array(motion, name)
            parts.append(array[:, hidden:])
        torque = self.gear * action
        return torch.cat(parts, -1).float(), torque.float()

    def step(self, before: Motion, after: Motion, action: Tensor) -> Outcome:
        """Speed and health, less what actions and contacts cost."""
        running = self.running
        observation, torque = self.observe(after, action)
        seconds = self.frame_skip * self.model.opt.timestep
        speed = (self._place(after) - self._place(before)) / seconds
        healthy = self._healthy(after)
        reward = running.forward * speed + running.healthy * healthy
        reward = reward - running.control * action.double().square().sum(-1, True)
        if running.contact:
            cost = running.contact * self._forces(after).square().sum(-1, True)
            reward = reward - cost.clamp(max=running.contact_most)
        return Outcome(observation, torque, reward.float(), ~healthy)

    def _array(self, motion: Motion, name: str) -> Tensor:
        return motion.sensors[:, self.columns[name]]

    def _forces(self, motion: Motion) -> Tensor:
        bound = self.running.contact_bound
        return self._array(motion, "cfrc_ext").clamp(-bound, bound)

    def _place(self, motion: Motion) -> Tensor:
        """How far bodies have got [N, 1]."""
        if self.running.centre:
            return self._array(motion, "xipos")[:, ::3] @ self.masses.unsqueeze(-1)
        if "xpos" in self.columns:  # a little older than the position, with Runge-Kutta
            return self._array(motion, "xpos")[:, 3:4]
        return motion.qpos[:, :1]

    def _healthy(self, motion: Motion) -> Tensor:
        column = self.running.height_column
        height, angle = motion.qpos[:, column : column + 1], motion.qpos[:, column + 1 : column + 2]
        healthy = torch.ones_like(height, dtype=torch.bool)
        if self.running.height is not None:
            low, high = self.running.height
            healthy = (height >= low) & (height <= high)
        if self.running.angle is not None:
            healthy = healthy & (angle.abs() <= self.running.angle)
        return healthy


def _load(asset: str) -> mujoco.MjModel:
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    spec = mujoco.MjSpec.from_file(str(folder / asset))
    # A body that breaks down is the environment's business: MuJoCo would silently start it anew.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    # The compiler does this too, but with a warning for each model, on screen and in a file.
    mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1
    model = spec.compile()
    if mass > 0:
        mujoco.mj_setTotalmass(model, mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model
