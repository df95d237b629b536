"""Measurements of speed, as ratios from one run. `noslip bench` prints them; tests never time anything."""
