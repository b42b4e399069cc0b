"""Images: IDX, NPZ and pictures in a ZIP to pixels, fingerprints, the canonical file, drafts of schemas."""
