"""`idpgan`: a conditional WGAN-GP trained with private steps."""
