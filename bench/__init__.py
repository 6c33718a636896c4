"""Benchmarks: what is claimed about speed, as programs; `python -m bench.run` runs them."""
