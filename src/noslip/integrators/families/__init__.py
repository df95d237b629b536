"""What the methods of one family share: states, equations, starts."""
