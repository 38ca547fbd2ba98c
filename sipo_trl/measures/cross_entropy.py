"""The cross-entropy measure."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import ProbabilisticTensorDictSequential
from torch import Tensor, nn
from torchrl.modules import set_recurrent_mode

from sipo_trl.archive import Archive
from sipo_trl.measures.base import StateDistanceMeasure


class CrossEntropyMeasure(StateDistanceMeasure):
    r"""How unlikely each archived policy is to act so: the paper's action-based ablation.

    The reward is :math:`r_j(s, a) = -\frac{1}{H} \log \pi_j(a | s)`. In multi-agent policies it is
    the mean over agents, so that the paper's :math:`\delta = 3.8` stands for the same unlikelihood
    of an action (2 %) whatever their number.

    Archived policies are frozen and stacked: they need the same architecture, and are evaluated
    together. Recurrent policies run along the time of [B, T] data, from a cleared memory at the
    beginning and wherever ``is_init`` says so; a memory that the data holds is another policy's.
    (Of TorchRL's recurrent modules those with ``python_based=True`` can be stacked.)

    Args:
        policies: an archive, or policies such as :class:`torchrl.modules.ProbabilisticActor`; may
            be empty.
        horizon: the environment's horizon H.
        maximum: upper bound on :math:`-\log \pi_j`, which keeps an action that is illegal for the
            archived policy, hence infinitely unlikely, from being all that counts.

    Example:
        >>> from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule
        >>> def policy(layer):
        ...     return ProbabilisticTensorDictSequential(
        ...         TensorDictModule(layer, in_keys=["observation"], out_keys=["logits"]),
        ...         ProbabilisticTensorDictModule(
        ...             ["logits"], ["action"], distribution_class=torch.distributions.Categorical
        ...         ),
        ...     )
        >>> measure = CrossEntropyMeasure([policy(nn.Linear(5, 4)), policy(nn.Linear(5, 4))])
        >>> measure.reward(torch.zeros(8, 5), torch.zeros(8)).shape
        torch.Size([8, 2])
    """

    def __init__(
        self,
        policies: Archive | Sequence[nn.Module],
        *,
        horizon: int = 1,
        maximum: float = 20.0,
    ) -> None:
        super().__init__(len(policies), horizon=horizon)
        self.maximum = maximum
        if isinstance(policies, Archive):
            policies = [entry.load_policy() for entry in policies]
        if not policies:
            return
        checked = [_check_type(index, policy) for index, policy in enumerate(policies)]
        first = deepcopy(checked[0]).requires_grad_(False)
        self.in_keys = first.in_keys
        self.network = _stack(first.det_part, [policy.det_part for policy in checked])
        self.sampler = first[-1]
        self._memories = [
            module.make_tensordict_primer().primers
            for module in first.modules()
            if hasattr(module, "make_tensordict_primer")
        ]

    @torch.no_grad()
    def reward(self, states: Tensor | TensorDictBase, actions: Tensor | None = None) -> Tensor:
        """Compute the intrinsic rewards, without gradients.

        Args:
            states: what the policies observe: a TensorDict [*] with their ``in_keys``, or, where
                that is one key only, its tensor [*, F], or [*, A, F] if the key is in a group of
                agents.
            actions: the actions taken there; by default those in the TensorDict.

        Returns:
            Rewards [*, J].
        """
        if self.num_references == 0:
            batch = states.batch_size if isinstance(states, TensorDictBase) else states.shape[:-1]
            return torch.zeros(*batch, 0, device=states.device)
        data = self._read(states)
        if actions is None:
            actions = data.get(self.sampler.out_keys[0])
        with set_recurrent_mode(bool(self._memories)):
            weights = dict(self.network.named_buffers())
            parameters = torch.vmap(self._run, in_dims=(0, None))(weights, data)
        # Built outside of vmap, which distributions are not made for.
        distribution = self.sampler.get_dist(parameters)
        log_prob = distribution.log_prob(actions.expand(self.num_references, *actions.shape))
        by_agent = -log_prob.reshape(self.num_references, *data.batch_size, -1)
        return by_agent.clamp(max=self.maximum).mean(dim=-1).movedim(0, -1) / self.horizon

    def _run(self, weights: dict[str, Tensor], data: TensorDictBase) -> TensorDictBase:
        """Compute one policy's distribution parameters."""
        output = torch.func.functional_call(self.network, weights, (data.copy(),))
        return output.select(*self.sampler.in_keys)

    def _read(self, states: Tensor | TensorDictBase) -> TensorDictBase:
        """Return a TensorDict of what the policies read, with cleared memories."""
        if not isinstance(states, TensorDictBase):
            if len(self.in_keys) > 1:
                raise ValueError(
                    f"The policies read {self.in_keys}, but got a single tensor: pass a TensorDict "
                    "with these keys."
                )
            (key,) = self.in_keys
            batch_dims = states.ndim - (2 if isinstance(key, tuple) else 1)
            return TensorDict({key: states}, batch_size=states.shape[:batch_dims])
        data = states.copy()
        for memory in self._memories:
            data.update(memory.zero(data.batch_size).to(data.device))
        return data


def _check_type(index: int, policy: nn.Module) -> ProbabilisticTensorDictSequential:
    if not isinstance(policy, ProbabilisticTensorDictSequential):
        raise TypeError(
            f"Policy {index} is a {type(policy).__name__}, which gives no log-probabilities: make "
            "it a ProbabilisticTensorDictSequential, such as torchrl.modules.ProbabilisticActor."
        )
    return policy


def _stack(skeleton: nn.Module, networks: Sequence[nn.Module]) -> nn.Module:
    """Replace the weights of the skeleton by buffers [J, ...] with those of all networks."""
    weights = [{**dict(net.named_parameters()), **dict(net.named_buffers())} for net in networks]
    forms = [{name: weight.shape for name, weight in some.items()} for some in weights]
    for index, form in enumerate(forms):
        if form != forms[0]:
            raise ValueError(
                f"Policy {index} has another architecture than policy 0: only policies with the "
                "same layers can be measured together."
            )
    for name in forms[0]:
        owner, _, leaf = name.rpartition(".")
        module = skeleton.get_submodule(owner)
        delattr(module, leaf)
        module.register_buffer(leaf, torch.stack([some[name].detach() for some in weights]))
    return skeleton
