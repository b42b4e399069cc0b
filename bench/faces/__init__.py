"""Releases of single face images: the published forms (bench.audit.faces), what `image_release` publishes, and attacks on both."""
