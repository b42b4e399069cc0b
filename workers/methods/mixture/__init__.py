"""`mixture`: moments of images, and a mixture of Gaussians made from them."""
