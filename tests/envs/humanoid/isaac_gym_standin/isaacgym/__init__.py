"""Stands in for Isaac Gym, which like the real one insists on being imported before torch."""

import sys

if "torch" in sys.modules:
    raise ImportError("PyTorch was imported before isaacgym modules.")
sys.stdout.write("Importing module 'gym_38'\n")  # as the real one does
