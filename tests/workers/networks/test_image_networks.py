from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

from workers.networks.image import ImageCritic

SHAPES = [
    ((28, 28, 1), (64, 128, 256), 4, 0),
    ((14, 14, 1), (4, 5, 6), 4, 10),
    ((32, 32, 3), (4, 5), 5, 3),
    ((64, 48, 3), (2, 3, 4), 4, 0),
]


@pytest.mark.parametrize(("shape", "channels", "kernel", "classes"), SHAPES)
def test_every_record_has_a_score_of_its_own(
    shape: tuple[int, int, int], channels: tuple[int, ...], kernel: int, classes: int
) -> None:
    critic = ImageCritic(shape, channels, kernel=kernel, classes=classes).double()
    records = torch.rand(5, critic.pixels + classes, dtype=torch.float64)
    scores = critic(records).detach()
    assert scores.shape == (5,)
    changed = records.clone()
    changed[2] = 0.5
    torch.testing.assert_close(critic(changed).detach()[[0, 1, 3, 4]], scores[[0, 1, 3, 4]])
    assert float(critic(changed).detach()[2]) != float(scores[2])


def test_channels_of_a_pixel_lie_side_by_side() -> None:
    critic = ImageCritic((8, 6, 3), (4,))
    images = torch.rand(2, 8, 6, 3)
    state = F.leaky_relu(critic.layers[0](images.permute(0, 3, 1, 2)), 0.2)
    wanted = state.permute(0, 2, 3, 1).flatten(1) @ critic.output.weight.T
    torch.testing.assert_close(critic(images.flatten(1)), wanted.squeeze(1))


def test_a_label_is_a_bias_and_no_input_of_the_penalty() -> None:
    critic = ImageCritic((8, 8, 1), (4, 5), classes=3).double()
    assert critic.labels is not None
    images, labels = torch.rand(6, 64, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    records = torch.cat((images, F.one_hot(labels, 3).double()), dim=1).requires_grad_()
    (slope,) = torch.autograd.grad(critic(records).sum(), records)
    assert not slope[:, 64:].any()
    assert slope[:, :64].any()
    weights = {name: value.detach() for name, value in critic.named_parameters()}
    per_record = vmap(grad(lambda record: functional_call(critic, weights, (record[None],)).squeeze()))(
        records.detach()
    )
    torch.testing.assert_close(per_record, slope)
    other = torch.cat((images, F.one_hot((labels + 1) % 3, 3).double()), dim=1)
    assert bool((critic(other) != critic(records)).all())


def test_too_many_layers() -> None:
    with pytest.raises(ValueError, match="too small"):
        ImageCritic((4, 4, 1), (2, 2, 2, 2))
