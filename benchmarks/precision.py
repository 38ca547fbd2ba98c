"""What matrix products of a training may be computed in on this machine, slowest first."""

from sipo_trl.processor import computes_bfloat16
from sipo_trl.training.config import PRECISIONS

NATIVE_PRECISIONS = [
    precision
    for precision in PRECISIONS
    if precision != "bfloat16" or computes_bfloat16("cpu")  # many times slower if emulated
]
FASTEST_PRECISION = NATIVE_PRECISIONS[-1]
