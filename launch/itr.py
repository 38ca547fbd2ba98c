"""Learns several good and truly different policies, one after another. See --help."""

from sipo_trl.algorithms.itr import ITRCommand, main
from sipo_trl.training.command_line import launch

if __name__ == "__main__":
    launch("itr", ITRCommand, main)
