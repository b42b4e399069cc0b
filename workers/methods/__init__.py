"""The run side of every method: one folder for each of `service/methods`, with the class `Run` in its `run.py`."""
