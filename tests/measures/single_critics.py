"""The critics of the Wasserstein measure one by one, as users of PyTorch would write them."""

from torch import nn

from sipo_trl.measures.critics import ImageCritics, VectorCritics


def vector_critic(critics: VectorCritics, index: int) -> nn.Module:
    """One of the critics, as a network of its own."""
    layers: list[nn.Module] = []
    for weight, bias in zip(critics.weights, critics.biases, strict=True):
        layers += [nn.Linear(*weight.shape[1:]), nn.LeakyReLU(0.2)]
        layers[-2].weight.data = weight[index].t().detach().clone()
        layers[-2].bias.data = bias[index, 0].detach().clone()
    layers.append(nn.Linear(len(critics.output[index]), 1, bias=False))
    layers[-1].weight.data = critics.output[index][None].detach().clone()
    return nn.Sequential(*layers)


def image_critic(critics: ImageCritics, index: int) -> nn.Module:
    """One of the critics, as a network of its own."""
    layers: list[nn.Module] = []
    for kernel, bias in zip(critics.kernels, critics.kernel_biases, strict=True):
        _, filters, channels, *_ = kernel.shape
        layers += [nn.Conv2d(channels, filters, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
        layers[-2].weight.data = kernel[index].detach().clone()
        layers[-2].bias.data = bias[index].detach().clone()
    return nn.Sequential(*layers, nn.Flatten(), vector_critic(critics, index))
