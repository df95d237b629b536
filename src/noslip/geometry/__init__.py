"""The spaces that the systems move on: linear algebra, connections, distributions."""
