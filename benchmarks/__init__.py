"""Measurements that are not installed: `python -m benchmarks` in the root of a checkout, or `noslip bench`.

The engine against C, noslip against its peers and against NumPy, cost against size, what is measured on a
GPU, and the pages that show it. What users can measure on their machines is in `noslip.bench`.
"""
