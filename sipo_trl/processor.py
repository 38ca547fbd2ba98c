"""What the processor, or a device, is good at."""

from functools import cache

import torch


@cache
def computes_bfloat16(device: str) -> bool:
    """Whether a type of device has instructions for products in bfloat16.

    Example:
        >>> computes_bfloat16("cpu") in (True, False)
        True
    """
    if device == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN multiplies matrices in float32 at least as fast as MKL, torch's own choice.

    It does with AVX-512, which MKL leaves unused where a processor is not Intel's: an AMD EPYC of
    the fifth generation makes 220 billion operations a second with it and 105 without. With AVX2
    alone it takes a twentieth longer.

    Example:
        >>> prefers_onednn() in (True, False)
        True
    """
    return torch.backends.mkldnn.is_available() and torch.cpu._is_avx512_supported()
