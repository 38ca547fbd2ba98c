"""State distances to every archived policy at once.

- :class:`StateDistanceMeasure`: what a measure is; :class:`ReferenceMeasure`, one that compares
  states with archived states;
- :class:`RBFMeasure`: mean kernel value, SIPO-RBF;
- :class:`WassersteinMeasure`: learned critics, from vectors or images, SIPO-WD;
- :class:`FinalStateMeasure`: distance between final states, for 2-D navigation;
- :class:`CrossEntropyMeasure`: likelihood of actions, an ablation;
- :class:`SampledMeasure`: any of them, of pictures and other costly views of states;
- :class:`StateNormalizer`: what puts features on one scale.
"""

from sipo_trl.measures.base import MeanOver, Sense, StateDistanceMeasure
from sipo_trl.measures.cross_entropy import CrossEntropyMeasure
from sipo_trl.measures.final_state import FinalStateMeasure
from sipo_trl.measures.normalization import StateNormalizer
from sipo_trl.measures.rbf import RBFMeasure
from sipo_trl.measures.reference import ReferenceMeasure
from sipo_trl.measures.sampled import SampledMeasure
from sipo_trl.measures.wasserstein import WassersteinMeasure

__all__ = [
    "CrossEntropyMeasure",
    "FinalStateMeasure",
    "MeanOver",
    "RBFMeasure",
    "ReferenceMeasure",
    "SampledMeasure",
    "Sense",
    "StateDistanceMeasure",
    "StateNormalizer",
    "WassersteinMeasure",
]
