"""`dpacgan`: `ganobfuscator` of labelled images, with a critic of two heads."""
