"""Walking towards a target, with Isaac's observations and reward."""

import mujoco
import torch
from torch import Tensor

from sipo_trl.envs.humanoid.model import FRAME_SKIP, TIME_STEP
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
ACTIONS = slice(87, 108)
# Columns of positions, velocities and sensors beside each other.
WAY, HEIGHT, QUATERNION, JOINTS_AT = slice(0, 2), slice(2, 3), slice(3, 7), slice(7, 28)
LINEAR, ANGULAR, SPEEDS = slice(28, 31), slice(31, 34), slice(34, 55)
STOPS, FEET, FORCES = slice(55, 76), slice(76, 88), slice(55, 88)


class HumanoidTask(Task):
    """Isaac's humanoid task on a :class:`~sipo_trl.envs.locomotion.Motion` of any simulator.

    The 108 observations are 0 height, 1:4 velocity and 4:7 angular velocity in the torso's frame,
    7 yaw, 8 roll, 9 angle to the target, 10 and 11 projections of the torso's axes on the vertical
    and on the way to the target, 12:33 joint positions in units of their range, 33:54 joint
    velocities, 54:75 joint forces (motors and stops), 75:87 forces and torques at the feet, 87:108
    the last action.

    Args:
        model: the body, as :func:`~sipo_trl.envs.humanoid.humanoid_model` makes it.

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

    def __init__(
        self, model: mujoco.MjModel, *, device: torch.device | str | None, dtype: torch.dtype
    ) -> None:
        self.model = model
        ranges = torch.tensor(self.model.jnt_range[1:], device=device, dtype=dtype)
        self.low, self.high = ranges.unbind(-1)
        self.initial = torch.tensor(self.model.qpos0, device=device, dtype=dtype)
        self.initial[2] = START_HEIGHT
        self.target = torch.tensor(TARGET, device=device, dtype=dtype)
        self.axes = _axes_of_products().to(device)
        gear = torch.tensor(self.model.actuator_gear[:, 0].astype("float32"), device=device)
        self.gear, self.power_cost = gear, 0.05 * gear / gear.max()
        self.scale, self.offset = self._scaling()
        self.standing = self._stand()

    def _scaling(self) -> tuple[Tensor, Tensor]:
        """What turns positions, velocities and sensors [88] into the observation's units."""
        scale = torch.ones(88, device=self.low.device)
        offset = torch.zeros_like(scale)
        # The way to the target.
        scale[WAY], offset[WAY] = -1, self.target.float()
        # Joint positions, from -1 to 1 within their ranges.
        scale[JOINTS_AT] = (2 / (self.high - self.low)).float()
        offset[JOINTS_AT] = ((self.low + self.high) / (self.low - self.high)).float()
        scale[ANGULAR], scale[SPEEDS], scale[FORCES] = 0.25, 0.1, 0.01
        return scale, offset

    def _stand(self) -> Tensor:
        """The observation [108] of a body that stands at the start with its joints at zero."""
        rest = self.initial.new_zeros(1, 88 - len(self.initial))
        motion = Motion(self.initial.unsqueeze(0), rest[:, :27], rest[:, :27], rest[:, 27:])
        observation, _ = self.observe(motion, self.initial.new_zeros(1, JOINTS).float())
        return observation[0]

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

    def observe_start(self, motion: Motion) -> tuple[Tensor, Tensor]:
        """The same as :meth:`observe`, sooner: bodies start alike in all but their joints."""
        observation = self.standing.expand(len(motion.qpos), -1).clone()
        joints = torch.addcmul(
            self.offset[JOINTS_AT], motion.qpos[:, 7:].float(), self.scale[JOINTS_AT]
        )
        observation[:, JOINT_POSITIONS] = joints
        observation[:, JOINT_VELOCITIES] = 0.1 * motion.qvel[:, 6:]
        return observation, torch.zeros_like(joints)

    def step(self, before: Motion, after: Motion, action: Tensor) -> Outcome:
        """Isaac's reward, and the end at a fall."""
        observation, torque = self._observe(after, action)
        # The movement along the way, rather than a small difference of large distances.
        way = self.target - 0.5 * (before.qpos[:, :2] + after.qpos[:, :2])
        progress = ((after.qpos[:, :2] - before.qpos[:, :2]) * way).sum(-1, True) / way.norm(
            dim=-1, keepdim=True
        )
        reward = self.reward(progress.float() / (FRAME_SKIP * TIME_STEP), observation)
        fallen = observation[:, :1] < FALLEN_HEIGHT
        reward = reward.masked_fill_(fallen, -1.0)
        observation = observation.clamp_(-OBSERVATION_BOUND, OBSERVATION_BOUND)
        return Outcome(observation, torque, reward, fallen)

    def reward(self, progress: Tensor, observation: Tensor) -> Tensor:
        """Isaac's reward of bodies that have not fallen [N, 1].

        Args:
            progress: speed towards the target in m/s [N, 1].
            observation: as it is after the step, unbounded [N, 108].
        """
        action = observation[:, ACTIONS]
        alive_and_heading = (observation[:, 11:12] * (0.5 / 0.8)).clamp_(max=0.5).add_(2)
        effort = action.square().sum(-1, True)
        power = (action * observation[:, JOINT_VELOCITIES]).abs_() @ self.power_cost
        stops = (observation[:, JOINT_POSITIONS].abs() > 0.98).sum(-1, True)
        return (
            alive_and_heading.add_(progress)
            .add_(observation[:, 10:11] > 0.93, alpha=0.1)
            .sub_(effort, alpha=0.01)
            .sub_(power.unsqueeze(-1))
            .sub_(stops, alpha=0.25)
        )

    def _observe(self, motion: Motion, action: Tensor) -> tuple[Tensor, Tensor]:
        parts = torch.cat([motion.qpos, motion.qvel, motion.sensors], -1).float()
        parts = torch.addcmul(self.offset, parts, self.scale)
        joints = parts[:, JOINTS_AT]
        # The sensors give magnitudes; a stop pushes away from the end of the range.
        stops = parts[:, STOPS] * joints.sign()
        torque = torch.addcmul(-100 * stops, self.gear, action)
        observation = torch.cat(
            [
                parts[:, HEIGHT],
                self._torso(
                    parts[:, QUATERNION], parts[:, LINEAR], parts[:, ANGULAR], parts[:, WAY]
                ),
                joints,
                parts[:, SPEEDS],
                0.01 * torque,
                parts[:, FEET],
                action,
            ],
            -1,
        )
        return observation, torque

    def _torso(self, quaternion: Tensor, velocity: Tensor, angular: Tensor, way: Tensor) -> Tensor:
        """Observations 1:12.

        Args:
            quaternion: from the torso's frame to the world's [N, 4].
            velocity: in the world's frame [N, 3].
            angular: velocity in the torso's own frame, scaled [N, 3].
            way: to the target, on the floor [N, 2].
        """
        products = quaternion.unsqueeze(-1) * quaternion.unsqueeze(-2)
        axes = products.flatten(1) @ self.axes  # forward, left and up, in the world's frame
        local = (axes.view(-1, 3, 3) * velocity.unsqueeze(1)).sum(-1)
        # On the floor: how far the way leads ahead, and to the left.
        (x, y), (along, across) = axes[:, :2].unbind(-1), way.unbind(-1)
        ahead, left = along * x + across * y, across * x - along * y
        yaw, roll = torch.atan2(y, x), torch.atan2(axes[:, 5], axes[:, 8])
        angles = [yaw, roll, torch.atan2(left, ahead), axes[:, 8], ahead / way.norm(dim=-1)]
        return torch.cat([local, angular, torch.stack(angles, -1)], -1)


def _axes_of_products() -> Tensor:
    """What makes a rotation's three axes [9] of its quaternion's products w w, w x ... z z [16]."""
    factors = {
        # forward
        0: {"ww": 1, "xx": 1, "yy": -1, "zz": -1}, 1: {"xy": 2, "wz": 2}, 2: {"xz": 2, "wy": -2},
        # left
        3: {"xy": 2, "wz": -2}, 4: {"ww": 1, "yy": 1, "xx": -1, "zz": -1}, 5: {"yz": 2, "wx": 2},
        # up
        6: {"xz": 2, "wy": 2}, 7: {"yz": 2, "wx": -2}, 8: {"ww": 1, "zz": 1, "xx": -1, "yy": -1},
    }  # fmt: skip
    matrix = torch.zeros(16, 9)
    for column, products in factors.items():
        for product, factor in products.items():
            row, position = map("wxyz".index, product)
            matrix[4 * row + position, column] = factor
    return matrix
