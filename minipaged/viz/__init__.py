"""Pictures of a run for a terminal. They take records and nothing else."""
