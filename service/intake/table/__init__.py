"""Tables: CSV and Parquet to typed columns, fingerprints, the canonical file, drafts of schemas."""
