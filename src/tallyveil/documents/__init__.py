"""The documents of a release: receipt, methodology page, description and proofs, as bytes."""
