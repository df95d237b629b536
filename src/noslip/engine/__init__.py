"""Where a run is computed, other than by XLA: native code, accelerators, the Taylor reference."""
