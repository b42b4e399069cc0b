"""What may be ordered: one folder per method, one line each in `catalogue.py`. No private row is read here."""
