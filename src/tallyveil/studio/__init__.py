"""The studio: the whole job in a browser, on your own machine, on the same road as every door."""
