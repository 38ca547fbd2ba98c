"""Walking towards a target, with Isaac's observations and reward."""

import torch
from torch import Tensor

from sipo_trl.envs.humanoid.model import FRAME_SKIP, TIME_STEP, humanoid_model
from sipo_trl.envs.locomotion import Motion, Outcome, Task

JOINTS = 21
# The target, as far away as Isaac's: straight ahead, never reached.
TARGET = (1000.0, 0.0)
# Both bodies stand with their torso at 1.28 m, so Isaac's mark means the same here: the torso has
# lost more than a third of its height, which is lower than kneeling upright (0.9 m).
FALLEN_HEIGHT = 0.8
# Isaac lets its humanoid fall from a little above the floor, so that no joint noise puts a foot
# into it.
START_HEIGHT = 1.34
POSITION_NOISE = 0.2
VELOCITY_NOISE = 0.1
OBSERVATION_BOUND = 5.0

# Columns of the observation.
DIVERSITY = slice(0, 54)
JOINT_POSITIONS = slice(12, 33)
JOINT_VELOCITIES = slice(33, 54)
JOINT_FORCES = slice(54, 75)
FEET_FORCES = slice(75, 87)
ACTIONS = slice(87, 108)


class HumanoidTask(Task):
    """Isaac's humanoid task on a :class:`~sipo_trl.envs.locomotion.Motion` of any simulator.

    The 108 observations are 0 height, 1:4 velocity and 4:7 angular velocity in the torso's frame,
    7 yaw, 8 roll, 9 angle to the target, 10 and 11 projections of the torso's axes on the vertical
    and on the way to the target, 12:33 joint positions in units of their range, 33:54 joint
    velocities, 54:75 joint forces (motors and stops), 75:87 forces and torques at the feet, 87:108
    the last action.

    Keyword Args:
        device: where the observations are computed.
        dtype: precision of positions and velocities.
    """

    frame_skip = FRAME_SKIP
    action_bound = 1.0
    observation_size = 108
    diversity_columns = DIVERSITY
    noise_size = 2 * JOINTS
    broken_reward = -1.0

    def __init__(self, *, device: torch.device | str | None, dtype: torch.dtype) -> None:
        self.model = humanoid_model()
        ranges = torch.tensor(self.model.jnt_range[1:], device=device, dtype=dtype)
        self.low, self.high = ranges.unbind(-1)
        self.gear = torch.tensor(self.model.actuator_gear[:, 0].astype("float32"), device=device)
        self.initial = torch.tensor(self.model.qpos0, device=device, dtype=dtype)
        self.initial[2] = START_HEIGHT

    def start(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Standing, with joints a little off, just above the floor."""
        offset, speed = (2 * noise - 1).split(JOINTS, -1)
        root = self.initial[:7].expand(len(noise), -1)
        joints = (self.initial[7:] + POSITION_NOISE * offset).clamp(self.low, self.high)
        qvel = torch.cat([torch.zeros_like(root[:, :6]), VELOCITY_NOISE * speed], -1)
        return torch.cat([root, joints], -1), qvel

    def observe(self, motion: Motion, action: Tensor) -> tuple[Tensor, Tensor]:
        """The observation [N, 108], bounded as Isaac's is, and the joint forces [N, 21]."""
        observation, torque = self._observe(motion, action)
        return observation.clamp_(-OBSERVATION_BOUND, OBSERVATION_BOUND), torque

    def step(self, before: Motion, after: Motion, action: Tensor) -> Outcome:
        """Isaac's reward, and the end at a fall."""
        observation, torque = self._observe(after, action)
        fallen = observation[:, :1] < FALLEN_HEIGHT
        progress = (target_distance(before.qpos) - target_distance(after.qpos)) / (
            FRAME_SKIP * TIME_STEP
        )
        reward = humanoid_reward(progress.float(), observation, self.gear / self.gear.max())
        reward = reward.masked_fill(fallen, -1.0)
        observation = observation.clamp_(-OBSERVATION_BOUND, OBSERVATION_BOUND)
        return Outcome(observation, torque, reward, fallen)

    def _observe(self, motion: Motion, action: Tensor) -> tuple[Tensor, Tensor]:
        sensors = motion.sensors.float()
        joints = (2 * motion.qpos[:, 7:] - self.high - self.low) / (self.high - self.low)
        joints = joints.float()
        # The sensors give magnitudes; a stop pushes away from the end of the range.
        torque = self.gear * action - joints.sign() * sensors[:, :JOINTS]
        observation = torch.cat(
            [
                torso_observation(motion.qpos[:, :7].float(), motion.qvel[:, :6].float()),
                joints,
                0.1 * motion.qvel[:, 6:].float(),
                0.01 * torque,
                0.01 * sensors[:, JOINTS:],
                action,
            ],
            -1,
        )
        return observation, torque


def target_distance(qpos: Tensor) -> Tensor:
    """How far bodies [N, nq] are from the target, on the floor [N, 1]."""
    across = [place - qpos[:, i : i + 1] for i, place in enumerate(TARGET)]
    return torch.hypot(*across)


def torso_observation(pose: Tensor, velocity: Tensor) -> Tensor:
    """The first 12 observations.

    Args:
        pose: position and quaternion [N, 7].
        velocity: in the world's frame, and angular velocity in the torso's own [N, 6].
    """
    px, py, height, w, x, y, z = pose.unbind(-1)
    vx, vy, vz, *angular = velocity.unbind(-1)
    # The torso's axes in the world's frame.
    fx, fy, fz = 1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)
    lx, ly, lz = 2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)
    ux, uy, uz = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    dx, dy = TARGET[0] - px, TARGET[1] - py
    distance = torch.hypot(dx, dy)
    dx, dy = dx / distance, dy / distance
    columns = [
        height,
        fx * vx + fy * vy + fz * vz,
        lx * vx + ly * vy + lz * vz,
        ux * vx + uy * vy + uz * vz,
        *(0.25 * rate for rate in angular),
        torch.atan2(fy, fx),
        torch.atan2(lz, uz),
        torch.atan2(fx * dy - fy * dx, fx * dx + fy * dy),
        uz,
        fx * dx + fy * dy,
    ]
    return torch.stack(columns, -1)


def humanoid_reward(progress: Tensor, observation: Tensor, motor_ratio: Tensor) -> Tensor:
    """Isaac's reward of bodies that have not fallen [N, 1].

    Args:
        progress: speed towards the target in m/s [N, 1].
        observation: as it is after the step, unbounded [N, 108].
        motor_ratio: strength of each motor in units of the strongest [21].
    """
    action = observation[:, ACTIONS]
    upright = 0.1 * (observation[:, 10:11] > 0.93)
    heading = 0.5 * (observation[:, 11:12] / 0.8).clamp(max=1)
    effort = 0.01 * action.square().sum(-1, True)
    power = 0.05 * ((action * observation[:, JOINT_VELOCITIES]).abs() @ motor_ratio).unsqueeze(-1)
    stops = 0.25 * (observation[:, JOINT_POSITIONS].abs() > 0.98).sum(-1, True)
    return progress + 2 + upright + heading - effort - power - stops
