"""The gallery: one page about a population, which needs no network and no other file.

- :func:`write_report`: makes the page;
- :mod:`~evaluation.report.content`: what it shows, as plain data, from
  :mod:`~evaluation.report.plane` (paths, heat maps), :mod:`~evaluation.report.features` and
  :mod:`~evaluation.report.curves`;
- ``assets/``: the page itself, its style and scripts, and the part of Apache ECharts that it uses.
"""

from evaluation.report.page import write_report

__all__ = ["write_report"]
