"""Speed and accuracy measured side by side with the peers; `python -m benchmarks` runs all."""
