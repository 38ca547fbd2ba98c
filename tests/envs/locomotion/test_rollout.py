import mujoco
import pytest
import torch

from sipo_trl.envs.humanoid import humanoid_model
from sipo_trl.envs.locomotion import Motion, RolloutSimulator


def standing(model: mujoco.MjModel, count: int) -> Motion:
    generator = torch.Generator().manual_seed(0)
    qpos = torch.as_tensor(model.qpos0).repeat(count, 1)
    qpos[:, 7:] += 0.1 * torch.randn(count, model.nq - 7, generator=generator)
    rest = torch.zeros(count, model.nv, dtype=torch.float64)
    return Motion(qpos, rest, rest, rest[:, :0])


def test_it_moves_as_mujoco_does():
    model = humanoid_model()
    simulator = RolloutSimulator(model, frame_skip=2, threads=2)
    motion = standing(model, 3)
    bodies = [mujoco.MjData(model) for _ in range(3)]
    for body, qpos in zip(bodies, motion.qpos, strict=True):
        body.qpos[:] = qpos.numpy()
    generator = torch.Generator().manual_seed(1)
    for _ in range(30):
        control = 2 * torch.rand(3, model.nu, generator=generator) - 1
        motion = simulator.step(motion, control)
        for i, body in enumerate(bodies):
            body.ctrl[:] = control[i].numpy()
            mujoco.mj_step(model, body, 2)
            for name in ("qpos", "qvel"):
                expected = torch.as_tensor(getattr(body, name))
                torch.testing.assert_close(getattr(motion, name)[i], expected, rtol=0, atol=1e-5)
            expected = torch.as_tensor(body.sensordata)
            torch.testing.assert_close(motion.sensors[i], expected, rtol=1e-4, atol=1e-2)


def test_neither_threads_nor_neighbours_nor_the_past_matter():
    model = humanoid_model()
    start = standing(model, 40)
    control = torch.linspace(-1, 1, 40 * model.nu).view(40, -1)
    one, many = (RolloutSimulator(model, frame_skip=2, threads=n) for n in (1, 3))
    for _ in range(2):
        expected, actual = one.step(start, control), many.step(start, control)
        assert (actual.qpos == expected.qpos).all()
        assert (actual.sensors == expected.sensors).all()
    alone = Motion(start.qpos[7:8], start.qvel[7:8], start.warmstart[7:8], start.sensors[7:8])
    assert (many.step(alone, control[7:8]).qvel == expected.qvel[7:8]).all()


def test_a_model_with_more_state_is_refused():
    model = mujoco.MjModel.from_xml_string("""
        <mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
        <actuator><position joint="j" timeconst="1"/></actuator></mujoco>""")
    with pytest.raises(ValueError, match="state beside positions and velocities"):
        RolloutSimulator(model, frame_skip=1)
