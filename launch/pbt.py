"""Learns several good and truly different policies, all at once. See --help."""

from functools import partial

from sipo_trl.algorithms import run_pbt
from sipo_trl.training.command_line import launch
from sipo_trl.training.program import Command, execute

if __name__ == "__main__":
    launch("pbt", Command, partial(execute, run_pbt))
