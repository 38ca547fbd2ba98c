import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from sipo_trl.envs.humanoid import HumanoidTask, humanoid_model
from sipo_trl.envs.locomotion import Motion

GEARS = [40] * 3 + [40, 40, 120, 80, 20, 20] * 2 + [20, 20, 40] * 2


@pytest.fixture(scope="module")
def task() -> HumanoidTask:
    return HumanoidTask(humanoid_model(), device="cpu", dtype=torch.float64)


def random_motion(task: HumanoidTask, count: int = 6) -> Motion:
    generator = torch.Generator().manual_seed(0)

    def draw(size: int) -> torch.Tensor:
        return torch.randn(count, size, generator=generator, dtype=torch.float64)

    quaternion = torch.nn.functional.normalize(draw(4), dim=-1)
    qpos = torch.cat([draw(2), 1.2 + 0.1 * draw(1), quaternion, 0.3 * draw(21)], -1)
    sensors = torch.cat([(100 * draw(21)).clamp(min=0), 100 * draw(12)], -1)
    return Motion(qpos, draw(27), draw(27), sensors)


def test_every_observation_has_isaacs_meaning(task):
    motion = random_motion(task)
    action = torch.rand(6, 21) * 2 - 1
    observation, torque = task.observe(motion, action)
    model, data = task.model, mujoco.MjData(task.model)
    for i in range(6):
        data.qpos[:], data.qvel[:] = motion.qpos[i].numpy(), motion.qvel[i].numpy()
        mujoco.mj_forward(model, data)
        body = model.body("torso").id
        axes = data.xmat[body].reshape(3, 3)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 1)
        yaw, _, roll = Rotation.from_matrix(axes).as_euler("ZYX")
        way = np.array([1000.0, 0.0]) - data.qpos[:2]
        angle = math.remainder(math.atan2(way[1], way[0]) - yaw, 2 * math.pi)
        heading = axes[:2, 0] @ way / np.linalg.norm(way)
        middle, half = model.jnt_range[1:].mean(1), np.ptp(model.jnt_range[1:], axis=1) / 2
        scaled = (data.qpos[7:] - middle) / half
        force = (
            np.array(GEARS) * action[i].numpy() - np.sign(scaled) * motion.sensors[i, :21].numpy()
        )
        expected = [
            [data.xpos[body, 2]], velocity[3:], 0.25 * velocity[:3],
            [yaw, roll, angle, axes[2, 2], heading],
            scaled, 0.1 * data.qvel[6:], 0.01 * force, 0.01 * motion.sensors[i, 21:].numpy(),
            action[i].numpy(),
        ]  # fmt: skip
        expected = np.concatenate(expected).clip(-5, 5)
        np.testing.assert_allclose(observation[i].numpy(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(torque[i].numpy(), force, rtol=1e-5, atol=1e-5)


def test_the_reward_is_isaacs(task):
    observation = torch.zeros(3, 108)
    observation[:, 10] = torch.tensor([0.94, 0.5, 1.0])
    observation[:, 11] = torch.tensor([0.9, 0.4, -0.8])
    observation[:, 12:15] = torch.tensor([0.99, -0.99, 0.97])
    observation[:, 33], observation[:, 34] = 2.0, -1.0
    observation[:, 87], observation[:, 88] = -0.5, 1.0
    strength = 40 / 120  # of the abdomen's motors beside the hips'
    costs = 0.01 * 1.25 + 0.05 * strength * (1.0 + 1.0) + 2 * 0.25
    expected = [1.5 + 2 + 0.1 + 0.5 - costs, 1.5 + 2 + 0.25 - costs, 1.5 + 2 + 0.1 - 0.5 - costs]
    reward = task.reward(torch.full((3, 1), 1.5), observation)
    assert reward.flatten().tolist() == pytest.approx(expected)


def test_progress_is_speed_towards_the_target_and_a_fall_costs_one(task):
    before, after = random_motion(task), random_motion(task)
    after.qpos[:, 0] += 0.05
    after.qpos[0, 2] = 0.79
    after.qpos[1:, 2] = 0.81
    still = Motion(after.qpos, after.qvel, after.warmstart, after.sensors)
    action = torch.zeros(6, 21)
    moved, rested = task.step(before, after, action), task.step(still, after, action)
    assert moved.terminated.flatten().tolist() == [True] + [False] * 5
    assert moved.reward[0] == -1
    target = torch.tensor([1000.0, 0.0], dtype=torch.float64)
    near, far = ((motion.qpos[1:, :2] - target).norm(dim=-1) for motion in (after, before))
    speed = (moved.reward - rested.reward)[1:, 0]
    torch.testing.assert_close(speed, (far - near).float() * 60, rtol=0, atol=1e-5)


def test_episodes_start_above_the_floor_within_the_joints_ranges(task):
    corners = torch.tensor([[0.0], [1.0]]).double().repeat(1, 42)
    noise = torch.cat([torch.rand(200, 42, dtype=torch.float64), corners])
    qpos, qvel = task.start(noise)
    low, high = torch.as_tensor(task.model.jnt_range[1:]).unbind(-1)
    assert (qpos[:, 7:] >= low).all()
    assert (qpos[:, 7:] <= high).all()
    assert qpos[:, 7:].abs().max() == 0.2
    assert qvel.abs().max() == 0.1
    data = mujoco.MjData(task.model)
    for pose in qpos:
        data.qpos[:] = pose.numpy()
        mujoco.mj_forward(task.model, data)
        assert data.ncon == 0


def test_the_first_observation_is_the_same_as_any(task):
    qpos, qvel = task.start(torch.rand(5, 42, dtype=torch.float64))
    motion = Motion(qpos, qvel, qvel, torch.zeros(5, 33, dtype=torch.float64))
    for first, any_ in zip(
        task.observe_start(motion), task.observe(motion, torch.zeros(5, 21)), strict=True
    ):
        torch.testing.assert_close(first, any_, rtol=0, atol=1e-6)


def test_nothing_is_read_on_the_host():
    task = HumanoidTask(humanoid_model(), device="meta", dtype=torch.float32)
    qpos, qvel = task.start(torch.empty(3, 42, device="meta"))
    motion = Motion(qpos, qvel, qvel, torch.empty(3, 33, device="meta"))
    assert task.observe_start(motion)[0].shape == (3, 108)
    outcome = task.step(motion, motion, torch.empty(3, 21, device="meta"))
    assert outcome.observation.shape == (3, 108)
    assert outcome.reward.shape == outcome.terminated.shape == (3, 1)
