"""Matrix factorisation in which every user and item has an embedding of its own size."""

__version__ = "0.1.0"
