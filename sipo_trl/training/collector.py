"""A collector that can be stopped and continued as if nothing had happened."""

from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from tensordict import TensorDict, TensorDictBase
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import TransformedEnv


class ResumableCollector(Collector):
    """TorchRL's single-process collector, whose ``state_dict`` holds the episodes under way.

    TorchRL's own keeps counters and weights but starts new episodes on resume. Here the data that
    goes into the next step and the environment's buffers are kept too, so that a restored
    collector yields the same bits as one that was never stopped, provided that the environment
    keeps its state in buffers (as all of ours do) and the random generators are restored as well.

    The policy's weights are not part of it: they belong to whoever trains them.

    Examples:
        >>> from sipo_trl.envs import NavigationEnv
        >>> def collector():
        ...     env = NavigationEnv(batch_size=[4], seed=0)
        ...     return ResumableCollector(env, env.rand_action, frames_per_batch=20)
        >>> first, second = collector(), collector()
        >>> _ = first.next()
        >>> second.load_state_dict(first.state_dict())
        >>> bool((second.next()["observation"][:, 0] == first._carrier["observation"]).all())
        True
    """

    _carrier: TensorDictBase

    def state_dict(self) -> OrderedDict[str, Any]:
        """Counters, the data of the next step, and the environment's own state."""
        return OrderedDict(
            frames=self._frames,
            iter=self._iter,
            carrier=dict(self._carrier.clone().flatten_keys(".").items()),
            **{name: deepcopy(part.state_dict()) for name, part in self._stateful_parts().items()},
        )

    def load_state_dict(self, state_dict: Mapping[str, Any], **kwargs: Any) -> None:
        """Continues where the collector that gave this state stood."""
        self._frames, self._iter = state_dict["frames"], state_dict["iter"]
        carrier = TensorDict(state_dict["carrier"], self._carrier.batch_size).unflatten_keys(".")
        # Into what is there already, where groups of agents have their own batch size.
        self._carrier = self._carrier.clone().update(carrier)
        for name, part in self._stateful_parts().items():
            part.load_state_dict(state_dict[name], **kwargs)

    def _stateful_parts(self) -> dict[str, nn.Module]:
        if isinstance(self.env, TransformedEnv):
            return {"env": self.env.base_env, "transform": self.env.transform}
        return {"env": self.env}
