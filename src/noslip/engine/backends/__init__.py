"""What runs or prints a scalar program, each a visitor of it."""
