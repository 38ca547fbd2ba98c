import mujoco
import numpy as np

from sipo_trl.envs.humanoid import humanoid_model


def test_it_has_isaacs_timing_and_order():
    model = humanoid_model()
    assert np.isclose(model.opt.timestep, 1 / 120)
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert (model.geom_condim == 3).all()
    assert model.nu == model.njnt - 1 == 21
    assert (model.actuator_trnid[:, 0] == np.arange(1, 22)).all()
    gears = {model.actuator(i).name: model.actuator_gear[i, 0] for i in range(21)}
    assert (gears["hip_y_left"], gears["knee_right"], gears["elbow_left"]) == (120, 80, 40)
    assert model.actuator_ctrllimited.all()


def test_the_whole_body_meets_the_floor_and_weighs_on_it():
    model = humanoid_model()
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1200)
    lowest = min(data.geom_xpos[i, 2] for i in range(model.ngeom) if model.geom(i).name != "floor")
    assert lowest > 0.02  # lying, not fallen through
    weight = model.body_subtreemass[0] * 9.81
    force = sum(contact_force(model, data, i)[2] for i in range(data.ncon))
    assert np.isclose(force, weight, rtol=0.02)


def contact_force(model: mujoco.MjModel, data: mujoco.MjData, index: int) -> np.ndarray:
    """One contact's force on the body, in the world's frame."""
    wrench = np.zeros(6)
    mujoco.mj_contactForce(model, data, index, wrench)
    return data.contact[index].frame.reshape(3, 3).T @ wrench[:3]
