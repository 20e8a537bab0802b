"""The privacy budget of every dataset, debited before anything is drawn."""
