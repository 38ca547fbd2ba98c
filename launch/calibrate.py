"""Finds a measure's settings from two policies that learn the task alone. See --help."""

from sipo_trl.algorithms.calibrate import CalibrateCommand, main
from sipo_trl.training.command_line import launch

if __name__ == "__main__":
    launch("calibrate", CalibrateCommand, main)
