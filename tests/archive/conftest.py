"""What all tests of the archive share."""

import os

import pytest


@pytest.fixture(autouse=True)
def _fsync(monkeypatch):
    """Hundreds of appends would spend their time waiting for the disk; test_crash.py does wait."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
