"""The road from a table to a release: options, plan, draws, release, folder."""
