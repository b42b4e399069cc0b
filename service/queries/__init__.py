"""Questions about a dataset: what was answered before costs nothing, the rest is ordered as a release of `method: queries`."""
