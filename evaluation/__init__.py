"""Metrics, plots and pages made from saved archives; never needs the training code."""
