"""Running: what happens in a step, who advances it, how it is paced, planned and stored."""
