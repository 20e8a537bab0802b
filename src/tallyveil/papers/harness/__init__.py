"""Run the experiments and judge them against what the papers print."""
