"""`dpsyn`: an autoencoder for each class, and Gaussians on its codes by private EM."""
