"""Learns several good and truly different policies, one after another. See --help."""

from functools import partial

from sipo_trl.algorithms import run_itr
from sipo_trl.training.command_line import launch
from sipo_trl.training.program import Command, execute

if __name__ == "__main__":
    launch("itr", Command, partial(execute, run_itr))
