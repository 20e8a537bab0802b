"""The best mechanism there is: problem -> program -> fold -> solver -> bound -> design."""
