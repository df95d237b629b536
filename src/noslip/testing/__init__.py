"""Claims tests as functions, for the classes and systems of this package and of others."""
