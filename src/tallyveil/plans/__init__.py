"""How a release will be made: its table met, every column planned, its accuracy foretold."""
