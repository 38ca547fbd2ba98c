"""Settings of a run that takes a second."""

from sipo_trl.envs.config import NavigationConfig
from sipo_trl.training.config import (
    AlgorithmConfig,
    BudgetConfig,
    CollectorConfig,
    EntryConfig,
    FinalStateConfig,
    ITRConfig,
    MeasureConfig,
    MultiplierConfig,
    NetworkConfig,
    PPOConfig,
)


def small_config(measure: MeasureConfig | None = None, **changes: object) -> ITRConfig:
    """Two short iterations of two short attempts each; ``changes`` replace top-level fields."""
    settings = {
        "env": NavigationConfig(horizon=20),
        "measure": measure or FinalStateConfig(delta=0.9, saturation=0.4),
        "algorithm": AlgorithmConfig(
            name="test",
            tries=2,
            settle=5,
            multiplier=MultiplierConfig(lr=0.5, initial=1.0),
            entry=EntryConfig(episodes=3, exploration="sample", max_states=50),
        ),
        "collector": CollectorConfig(num_envs=8, frames_per_batch=80),
        "network": NetworkConfig(hidden=[8]),
        "ppo": PPOConfig(epochs=2, minibatches=2),
        "budget": BudgetConfig(name="test", frames=640),
        "iterations": 2,
    }
    return ITRConfig(**(settings | changes))
