"""One question, one script: `python -m benchmarks.NAME [small]`. `python -m benchmarks` asks all, for one table."""
