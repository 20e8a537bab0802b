"""The distribution of true counts, estimated from private draws and nothing else."""
