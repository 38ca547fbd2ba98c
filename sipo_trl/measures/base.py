"""What every state-distance measure is."""

from abc import ABC, abstractmethod
from typing import Literal, get_args

from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

Sense = Literal["at_least", "at_most"]
MeanOver = Literal["horizon", "steps"]


class StateDistanceMeasure(nn.Module, ABC):
    r"""How far states are from those of each archived policy.

    A measure turns states into one intrinsic reward per archived policy. The distance to policy
    ``j`` is the return of that reward, :math:`D_j = \mathbb{E}[\sum_h r_j(s_h)]`; larger is
    farther.

    Args:
        num_references: number J of archived policies; 0 is fine.
        horizon: the environment's horizon H. Rewards carry the factor 1/H, so that a distance is a
            mean over the episode; 1 leaves it out.
        mean_over: what that mean is over: the whole horizon, as in the paper, or the steps that an
            episode had. Over the horizon, an episode that ends early is less far away than the
            same steps followed by others like them, so that it pays to go on (or, where distances
            are negative, to end it soon).

    Attributes:
        sense: how the constraint on a distance reads; see :meth:`threshold`.
        final_only: whether the reward counts at an episode's last step only. Whoever knows where
            episodes end, such as :class:`~sipo_trl.transforms.StateDistanceReward`, has to set it
            to zero elsewhere.

    Example:
        >>> import torch
        >>> class Norm(StateDistanceMeasure):
        ...     def reward(self, states, actions=None):
        ...         return states.norm(dim=-1, keepdim=True) / self.horizon
        >>> Norm(1, horizon=5).reward(torch.tensor([[3.0, 4.0]]))
        tensor([[1.]])
    """

    sense: Sense = "at_least"
    final_only: bool = False

    def __init__(
        self, num_references: int, *, horizon: int = 1, mean_over: MeanOver = "horizon"
    ) -> None:
        super().__init__()
        if mean_over not in get_args(MeanOver):
            choices = ", ".join(get_args(MeanOver))
            raise ValueError(f"mean_over is {mean_over!r}: choose one of {choices}.")
        if horizon < 1:
            raise ValueError(
                f"horizon is {horizon}, but it divides the rewards: give the number of steps of an "
                "episode, or 1."
            )
        self.num_references = num_references
        self.horizon = horizon
        self.mean_over = mean_over

    @abstractmethod
    def reward(self, states: Tensor, actions: Tensor | None = None) -> Tensor:
        """Compute the intrinsic rewards, without gradients.

        Args:
            states: states [*, *F], of the form of the references.
            actions: the actions taken in them, for measures that look at actions.

        Returns:
            Rewards [*, J] in the dtype of the states, or float32 if that is an integer.
        """

    def update(self, states: Tensor) -> TensorDictBase:
        """Learn from a batch of the current policy's states [*, *F].

        Returns:
            Metrics, for logging; empty unless the measure learns.
        """
        return TensorDict()

    def distance(self, returns: Tensor, lengths: Tensor) -> Tensor:
        """Turn the intrinsic returns of episodes, or their means, into distances.

        Args:
            returns: sums of rewards [*, J].
            lengths: of how many steps [*, 1].
        """
        return returns * (self.horizon / lengths) if self.mean_over == "steps" else returns

    def view(self, states: Tensor) -> Tensor:
        """What is compared of states [n, *F], and therefore archived: by default all of them."""
        return states

    def threshold(self, delta: float) -> float:
        r"""Turn the paper's :math:`\delta` into the bound on :math:`D_j`.

        The constraint is that :math:`D_j` is at least (or, by ``sense``, at most) this bound.
        """
        return delta

    def extra_repr(self) -> str:
        """Say how many references there are."""
        return f"num_references={self.num_references}, horizon={self.horizon}"
