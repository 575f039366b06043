"""Measurements beside peers and against the machine: ``python -m benchmarks``."""
