"""The humanoid's body, for MuJoCo."""

from pathlib import Path

import mujoco
import torchrl

# Isaac's timing: 60 actions per second, each for two physics steps.
TIME_STEP = 1 / 120
FRAME_SKIP = 2
FEET = ("foot_right", "foot_left")


def humanoid_model() -> mujoco.MjModel:
    """TorchRL's humanoid, with Isaac's timing and sensors.

    The actuators stand in the order of the joints, which is also Isaac's. The sensors are the 21
    forces of the joints' stops, then force and torque between each foot and its shin.

    Examples:
        >>> model = humanoid_model()
        >>> model.nu, model.nsensordata, model.actuator(0).name
        (21, 33, 'abdomen_z')
    """
    folder = Path(torchrl.__file__).parent / "envs" / "custom" / "mujoco" / "assets"
    spec = mujoco.MjSpec.from_file(str(folder / "humanoid.xml"))
    spec.option.timestep = TIME_STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # The file allows the solver one iteration, for accelerators; at this time step the body
    # explodes with less than five. It stops by itself when it has converged.
    spec.option.iterations, spec.option.ls_iterations = 100, 50
    # A body that breaks down is the environment's business: MuJoCo would silently start it anew.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    for geom in spec.geoms:
        # In the file only the feet touch the floor: the body would kneel through it.
        geom.conaffinity = int(geom.name != "floor")
    joints = [joint.name for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]
    _order_actuators(spec, joints)
    _add_sensors(spec, joints)
    return spec.compile()


def _order_actuators(spec: mujoco.MjSpec, joints: list[str]) -> None:
    gears = {actuator.target: actuator.gear[0] for actuator in spec.actuators}
    for actuator in spec.actuators:
        spec.delete(actuator)
    for name in joints:
        actuator = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrlrange=[-1, 1]
        )
        actuator.gear[0] = gears[name]
        actuator.ctrllimited = True


def _add_sensors(spec: mujoco.MjSpec, joints: list[str]) -> None:
    kinds, objects = mujoco.mjtSensor, mujoco.mjtObj
    for name in joints:
        spec.add_sensor(
            name=f"stop_{name}",
            type=kinds.mjSENS_JOINTLIMITFRC,
            objtype=objects.mjOBJ_JOINT,
            objname=name,
        )
    for foot in FEET:
        spec.body(foot).add_site(name=foot)
        for kind in (kinds.mjSENS_FORCE, kinds.mjSENS_TORQUE):
            spec.add_sensor(type=kind, objtype=objects.mjOBJ_SITE, objname=foot)
