"""hotspan inside other frameworks: one module each, which needs that framework and nothing else."""
