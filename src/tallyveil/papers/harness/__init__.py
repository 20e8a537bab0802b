"""Run the experiments and compare them with what the papers print."""
