"""Pictures of runs, with matplotlib (the `plots` extra). Nothing else in the package imports it."""
