"""`dpgm`: private k-means, and a variational autoencoder for each cluster."""
