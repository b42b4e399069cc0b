"""What a dataset is declared to be: schemas, grids, the privacy unit. Pure."""
