"""What the measures that compare states with archived states have in common."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from tensordict import MemoryMappedTensor
from torch import Tensor

from sipo_trl.archive import Archive
from sipo_trl.measures.base import MeanOver, StateDistanceMeasure

References = Archive | Sequence[Tensor]


class ReferenceMeasure(StateDistanceMeasure):
    """A measure of the distance between states and each entry's archived states.

    References are buffers: they follow the measure's device and are never trained. What is mapped
    from disk is neither copied nor part of the ``state_dict``, because the archive holds it
    already: load such a ``state_dict`` into a measure of the same archive.

    Args:
        references: an archive, or one tensor [n_j, *F] per archived policy; may be empty.
        horizon: see :class:`~sipo_trl.measures.StateDistanceMeasure`.
        mean_over: see there.

    Attributes:
        state_shape: the shape F of a state, or ``None`` without references.

    Example:
        >>> class NearestState(ReferenceMeasure):
        ...     def _distances(self, states):
        ...         tables = [torch.cdist(states, reference) for reference in self.references]
        ...         return torch.stack([table.amin(dim=1) for table in tables], dim=1)
        >>> NearestState([torch.tensor([[1.0], [5.0]])]).reward(torch.tensor([[3.5]]))
        tensor([[1.5000]])
    """

    def __init__(
        self, references: References, *, horizon: int = 1, mean_over: MeanOver = "horizon"
    ) -> None:
        super().__init__(len(references), horizon=horizon, mean_over=mean_over)
        mapped = isinstance(references, Archive)
        tensors = _get_states(references)
        _check_form(tensors)
        self.state_shape = tensors[0].shape[1:] if tensors else None
        for index, tensor in enumerate(tensors):
            on_disk = mapped or isinstance(tensor, MemoryMappedTensor)
            # A plain tensor over the same memory: subclasses are opaque to torch.compile.
            states = tensor.detach().as_subclass(Tensor)
            # Memory may change under us (collectors reuse theirs), files of an archive do not.
            states = states if on_disk else states.clone()
            self.register_buffer(f"reference_{index}", states, persistent=not on_disk)

    @property
    def references(self) -> list[Tensor]:
        """The archived states, [n_j, *F] each."""
        return [self.get_buffer(f"reference_{index}") for index in range(self.num_references)]

    @torch.no_grad()
    def reward(self, states: Tensor, actions: Tensor | None = None) -> Tensor:
        """Compute the intrinsic rewards, without gradients.

        Args:
            states: states [*, *F], of the form of the references.
            actions: one-hot or continuous actions [*, ...], which are joined with states [*, F'];
                the references are then such pairs, F = F' + number of action components.

        Returns:
            Rewards [*, J] in the dtype of the states, or float32 if that is an integer.
        """
        if actions is not None:
            states = torch.cat([states, actions.flatten(states.ndim - 1).to(states)], dim=-1)
        dtype = states.dtype if states.is_floating_point() else torch.float32
        if self.state_shape is None:
            return torch.zeros(*states.shape[:-1], 0, dtype=dtype, device=states.device)
        distances = self._distances(self._flatten(states, self.state_shape))
        batch = states.shape[: states.ndim - len(self.state_shape)]
        return (distances / self.horizon).to(dtype).reshape(*batch, self.num_references)

    @abstractmethod
    def _distances(self, states: Tensor) -> Tensor:
        """Return the distances [N, J] of states [N, *F] to at least one reference."""

    @staticmethod
    def _flatten(states: Tensor, shape: torch.Size) -> Tensor:
        """Turn states [*, *F] into [N, *F]."""
        if states.shape[-len(shape) :] != shape:
            raise ValueError(
                f"The states have the shape {list(states.shape)}, but those of the references have "
                f"the shape {list(shape)}: measure the kind of states that was archived."
            )
        return states.reshape(-1, *shape)


def _get_states(references: References) -> list[Tensor]:
    """Return the states [n_j, *F] of each archived policy."""
    if isinstance(references, Archive):
        return [entry.states for entry in references]
    return list(references)


def _check_form(references: Sequence[Tensor]) -> None:
    for index, states in enumerate(references):
        if states.ndim < 2 or len(states) == 0 or states.shape[1:] != references[0].shape[1:]:
            raise ValueError(
                f"Reference {index} has the shape {list(states.shape)}: every reference must be "
                "[n, *F] with at least one state, and F the same for all."
            )
