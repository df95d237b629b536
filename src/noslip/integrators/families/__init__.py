"""What the methods of one family share, in files named for it: states, maps, equations, starts."""
