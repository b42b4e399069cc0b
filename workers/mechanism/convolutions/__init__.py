"""Exact per-unit gradients of a LeakyReLU critic of images, a few units' at a time; a unit is one image.

The formulas are those of `outer_products`, with a sum over the places p of a layer's output (rows of im2col):
  ∂W_l = Σ_p u_l(Gz)_p h_{l-1}(Gz)_pᵀ + u_l(x)_p h_{l-1}(x)_pᵀ + u_l(x̂)_p q_{l-1,p}ᵀ,   ∂b_l = Σ_p u_l(Gz)_p + u_l(x)_p
so a layer's gradient has rank 3P for P places. Where that is small, norms come from Gram matrices and the weighted sum
from products over rescaled rows; where it is large, every unit's gradient is held until its weight is known.
`workers.mechanism.gradients.vmap_gradients` is the oracle.

Everything lies unit by unit and, within a unit, in three kinds (G(z), x, x̂); q takes the place of h(x̂).
"""

from workers.mechanism.convolutions.critic import ImageCriticTensors
from workers.mechanism.convolutions.gradients import ConvolutionGradients, convolution_gradients

__all__ = ["ConvolutionGradients", "ImageCriticTensors", "convolution_gradients"]
