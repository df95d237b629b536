"""A page that runs a system in the reader's browser, with the bits of native code; in one file, or served."""
