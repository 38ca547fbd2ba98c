"""Speed and memory, each against its peers in one run.

- :mod:`benchmarks.components`: measures, advantages, memory cells, the archive, one update;
- :mod:`benchmarks.training`: whole trainings;
- :mod:`benchmarks.humanoid`, :mod:`benchmarks.humanoid_training`: stepping and training humanoids;
- :mod:`benchmarks.football`: collecting football matches;
- :mod:`benchmarks.evaluation`: the state entropy.

``python -m benchmarks`` runs them all, ``python -m benchmarks components`` or
``python -m benchmarks.components`` one. Shared by them: :mod:`benchmarks.timing` and
:mod:`benchmarks.memory` measure, :mod:`benchmarks.peers` holds what is compared with, and
:mod:`benchmarks.table` prints and judges. ``docs/benchmarks.md`` explains each row.
"""
