"""δ(ε) of a composed list as one integral, without a grid of losses and without a Fourier transform of one.

    δ(ε) = 1/(2πi) ∫ M(s)·e^(-sε) / (s(s + 1)) ds  along Re s = θ > 0,  M(s) = E[e^(s·loss)] of the whole list

(Alghamdi et al. 2023, The Saddle-Point Method in Differential Privacy). All integrands are smooth, so the trapezoidal rule converges exponentially. At a θ
near the saddle point the integrand is largest at s = θ: nothing cancels, and doubles give δ to many digits however small it is.
"""

from __future__ import annotations

import math

import numpy as np

DIRECTIONS = (0, 1)
"""Zeroing a unit out, and the way back."""
REACH = 12.0
"""Standard deviations of the noise."""


def log_moment(q, noise, s, direction, *, points=12):
    """log E[e^(s·loss)] of one sampled Gaussian, for an array of complex s."""
    s = np.asarray(s, dtype=complex)
    middle = float(s.real.max())
    step = noise / points
    x = np.arange(-REACH * noise - (middle if direction else 0.0), REACH * noise + 1.0 + middle, step)
    ratio = (2.0 * x - 1.0) / (2.0 * noise * noise)
    loss = ratio if q == 1.0 else np.logaddexp(math.log1p(-q), math.log(q) + ratio)
    base = -(x**2) / (2.0 * noise * noise) + math.log(step / (noise * math.sqrt(2.0 * math.pi)))
    exponents = np.multiply.outer(-s if direction else 1.0 + s, loss) + base
    largest = exponents.real.max(axis=-1, keepdims=True)
    return largest[..., 0] + np.log(np.exp(exponents - largest).sum(axis=-1))


def true_delta(epsilon, pools, direction):
    """pools: (q, noise multiplier, count), at least some hundred steps in all or one large enough to be smooth."""

    def whole(s):
        return sum(count * log_moment(q, noise, s, direction) for q, noise, count in pools)

    tilts = np.geomspace(0.05, 5e3, 48)
    exponents = [
        float(whole(tilt).real) - tilt * epsilon + tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)
        for tilt in tilts
    ]
    tilt = float(tilts[np.nanargmin(exponents)])
    left, middle, right = (float(whole(tilt * part).real) for part in (0.98, 1.0, 1.02))
    deviation = math.sqrt((left - 2.0 * middle + right) / (0.02 * tilt) ** 2)
    step = min(tilt, 1.0 / deviation) / 12.0
    s = tilt + 1j * np.arange(0.0, 20.0 / deviation, step)
    values = (np.exp(whole(s) - s * epsilon) / (s * (s + 1.0))).real
    assert abs(values[-1]) < 1e-9 * values[0], "the integrand has not decayed: too few or too sharp steps for this rule"
    return float((values.sum() - values[0] / 2.0) * step / math.pi)


def worst_delta(epsilon, pools):
    return max(true_delta(epsilon, pools, direction) for direction in DIRECTIONS)
