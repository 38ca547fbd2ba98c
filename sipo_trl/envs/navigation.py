"""2-D navigation: several landmarks, each as good as the other (Sec. 4.2, App. A3)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torchrl.data import Bounded, Unbounded

from sipo_trl.envs.point import PointEnv

AGENT_RADIUS = 0.05
LANDMARK_RADIUS = 0.10
TOUCH_DISTANCE = AGENT_RADIUS + LANDMARK_RADIUS
TIME_STEP = 0.1
# The paper's c: agents that touch different landmarks are at least this far apart.
FINAL_STATE_DISTANCE = 0.40
LANDMARK_DISTANCE = FINAL_STATE_DISTANCE + 2 * TOUCH_DISTANCE
ORIGIN_DISTANCE = (0.16, 1.0)


class NavigationEnv(PointEnv):
    """Thousands of agents on a plane that see the same landmarks and are paid 1 to touch one.

    Each copy starts at the origin and chooses its velocity. An episode ends when the agent
    touches a landmark, or is truncated after ``horizon`` steps. Beside the keys of
    :class:`~sipo_trl.envs.point.PointEnv` there is ``landmark`` [*, 1]: the index of the landmark
    that is touched, -1 otherwise. The ``observation`` [*, 2 + 2N] is the agent's position and the
    N landmarks'. The layout belongs to the instance and outlives resets and ``set_seed``, so that
    all policies of a run learn in the same world.

    Args:
        num_landmarks: number N of landmarks to draw, 4 or 5 in the paper; more than 6 are
            hard to place.

    Keyword Args:
        batch_size: number of copies, as a shape.
        device: where the copies live.
        seed: decides the drawn layout; from torch's global generator if ``None``.
        landmarks: centres [N, 2] to use instead of drawn ones; N then replaces ``num_landmarks``.
        horizon: steps after which an episode is truncated.

    Examples:
        >>> env = NavigationEnv(num_landmarks=5, batch_size=[64], seed=0)
        >>> rollout = env.rollout(max_steps=10)
        >>> rollout["observation"].shape, rollout["diversity_state"].shape
        (torch.Size([64, 10, 12]), torch.Size([64, 10, 2]))
        >>> snapshot = env.state_dict()  # restores the live positions, step counts and layout
        >>> _ = NavigationEnv(num_landmarks=5, batch_size=[64]).load_state_dict(snapshot)
    """

    landmarks: Tensor

    def __init__(
        self,
        num_landmarks: int = 4,
        *,
        batch_size: Sequence[int] = (),
        device: torch.device | str | None = None,
        seed: int | None = None,
        landmarks: Tensor | None = None,
        horizon: int = 1000,
    ) -> None:
        if landmarks is None:
            landmarks = draw_landmarks(num_landmarks, seed=seed)
        _check_landmarks(landmarks)
        shape = torch.Size(batch_size)
        count = len(landmarks)
        super().__init__(
            horizon=horizon,
            action_spec=Bounded(-1, 1, shape=(*shape, 2), device=device),
            observation_spec={
                "observation": Unbounded((*shape, 2 + 2 * count), device=device),
                "landmark": Bounded(
                    -1, count - 1, shape=(*shape, 1), dtype=torch.int64, device=device
                ),
            },
            batch_size=shape,
            device=device,
        )
        # A copy, because load_state_dict writes to it.
        layout = landmarks.to(device=device, dtype=torch.float32, copy=True)
        self.register_buffer("landmarks", layout)

    def _move(self, action: Tensor) -> Tensor:
        return torch.add(self.position, action.clamp(-1, 1), alpha=TIME_STEP)

    def _observe(self) -> dict[str, Tensor]:
        landmark = touched_landmark(self.position, self.landmarks)
        layout = self.landmarks.flatten().expand(*self.batch_size, -1)
        return {
            "observation": torch.cat([self.position, layout], -1),
            "landmark": landmark,
            "success": landmark >= 0,
        }


def touched_landmark(position: Tensor, landmarks: Tensor) -> Tensor:
    """Index of the landmark that an agent touches, -1 where it touches none.

    Args:
        position: centres of agents [*, 2].
        landmarks: centres of landmarks [N, 2].

    Returns:
        Indices [*, 1].

    Examples:
        >>> landmarks = torch.tensor([[0.5, 0.0], [0.0, 0.8]])
        >>> touched_landmark(torch.tensor([[0.0, 0.7], [0.3, 0.0]]), landmarks).squeeze(-1)
        tensor([ 1, -1])
    """
    # Neither a matrix product, which cancels near the threshold, nor differences summed over two
    # coordinates, which take twice as long for a few copies and five times for thousands.
    distance = torch.cdist(
        position.reshape(-1, 2), landmarks, compute_mode="donot_use_mm_for_euclid_dist"
    )
    nearest, index = distance.min(-1)
    landmark = torch.where(nearest < TOUCH_DISTANCE, index, -1)
    return landmark.view(*position.shape[:-1], 1)


def most_frequent_landmark(landmark: Tensor) -> int:
    """The landmark by which a policy is counted; -1 if it never reached one.

    Args:
        landmark: index of the landmark at the end of each episode [*], -1 for none; of equally
            frequent ones the smallest counts.

    Examples:
        >>> most_frequent_landmark(torch.tensor([2, -1, 2, -1, -1, 0]))
        2
    """
    reached = landmark[landmark >= 0]
    return int(reached.bincount().argmax()) if len(reached) else -1


def draw_landmarks(num_landmarks: int, *, seed: int | None = None) -> Tensor:
    """Draw a layout uniformly from all that keep the paper's distances.

    Whole layouts are drawn, many at once, and the first valid one is taken: there is no partial
    layout to get stuck in. One in 20 is valid with 4 landmarks, one in 200 with 5.

    Args:
        num_landmarks: number N of landmarks.
        seed: decides the layout; from torch's global generator if ``None``.

    Returns:
        Centres [N, 2], the same on every device.

    Examples:
        >>> landmarks = draw_landmarks(5, seed=0)
        >>> bool(torch.pdist(landmarks).min() >= 0.70)
        True
    """
    if num_landmarks < 1:
        raise ValueError(f"num_landmarks is {num_landmarks}: give at least 1.")
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    near, far = ORIGIN_DISTANCE
    first, second = torch.triu_indices(num_landmarks, num_landmarks, offset=1)
    for _ in range(100):
        area, turn = torch.rand(2, 4096, num_landmarks, generator=generator)
        radius = (near**2 + (far**2 - near**2) * area).sqrt()
        layouts = torch.view_as_real(torch.polar(radius, 2 * torch.pi * turn))
        distances = (layouts[:, first] - layouts[:, second]).norm(dim=-1)
        valid = (distances >= LANDMARK_DISTANCE).all(-1)
        if valid.any():
            return layouts[valid.int().argmax()].clone()
    raise ValueError(
        f"num_landmarks is {num_landmarks}: so many hardly fit at distances of at least "
        f"{LANDMARK_DISTANCE:.2f} within {far} of the origin; use at most 6 or pass landmarks=."
    )


def _check_landmarks(landmarks: Tensor) -> None:
    if landmarks.ndim != 2 or landmarks.shape[-1] != 2 or not len(landmarks):
        raise ValueError(
            f"landmarks have shape {list(landmarks.shape)}: give centres of shape [N, 2]."
        )
    if bool((landmarks.norm(dim=-1) <= TOUCH_DISTANCE).any()):
        raise ValueError(
            f"landmarks touch the agent at its start: keep each further than {TOUCH_DISTANCE:.2f} "
            "from the origin."
        )
