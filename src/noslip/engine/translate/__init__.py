"""From JAX functions to scalar programs."""
