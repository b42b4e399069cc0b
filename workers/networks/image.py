"""Critic of images: strided convolutions, none of which mixes records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from workers.networks.table import LEAKY
from workers.numerics.activations import Activation

STRIDE = 2


class ImageCritic(nn.Module):
    """LeakyReLU convolutions of stride 2 on one record, then one linear output without a bias.

    A record is an image in the order (height, width, channels), flattened, and after it the one-hot label where there
    are `classes`. The label adds a bias of its class to every channel of the first layer, a_1 = conv(x) + B[y]; it is
    no input that the gradient penalty looks at. Gradients of any record depend on that record alone.

    kernel: 4 halves even sides exactly (28, 14, 7, 3; 64, 32, 16, 8), 5 rounds up. A side never falls below one.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        channels: Sequence[int] = (64, 128, 256),
        *,
        kernel: int = 4,
        classes: int = 0,
        activation: Activation = LEAKY,
    ) -> None:
        """Shape (height, width, channels) of an image; raises ValueError where a layer would be left without a side."""
        super().__init__()
        self.shape, self.classes, self.activation = shape, classes, activation
        self.pixels = shape[0] * shape[1] * shape[2]
        self.padding = padding = (kernel - 1) // 2
        self.layers = nn.ModuleList(
            nn.Conv2d(a, b, kernel, STRIDE, padding, bias=not (classes and place == 0))
            for place, (a, b) in enumerate(pairwise((shape[2], *channels)))
        )
        # A one-hot times a matrix; it stands in the place of the first layer's bias.
        self.labels = nn.Linear(classes, channels[0], bias=False) if classes else None
        height, width = shape[:2]
        for _ in channels:
            height, width = ((side + 2 * padding - kernel) // STRIDE + 1 for side in (height, width))
            if height < 1 or width < 1:
                raise ValueError("the image is too small for this many layers")
        self.output = nn.Linear(channels[-1] * height * width, 1, bias=False)

    def forward(self, record: Tensor) -> Tensor:
        image = record[:, : self.pixels].view(-1, *self.shape).permute(0, 3, 1, 2)  # (B, C, H, W)
        first, *others = self.layers
        state = first(image)
        if self.labels is not None:
            state = state + self.labels(record[:, self.pixels :].detach())[:, :, None, None]
        state = self.activation.value(state)
        for layer in others:
            state = self.activation.value(layer(state))
        # In the order (height, width, channels), as a record is.
        return self.output(state.permute(0, 2, 3, 1).flatten(1)).squeeze(-1)  # type: ignore[no-any-return]  # (B,)
