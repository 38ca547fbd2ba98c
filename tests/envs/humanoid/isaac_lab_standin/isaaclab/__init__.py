"""Stands in for Isaac Lab."""
