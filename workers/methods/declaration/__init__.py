"""The run of `method: declaration`: `run.py` says what it does."""
