"""What the reader of a release can conclude from it."""
