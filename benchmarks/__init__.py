"""Measurements: run all of them with ``python -m benchmarks``."""
