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
    """Whether oneDNN multiplies matrices in float32 faster than MKL, torch's own choice.

    It does where there is AVX-512 that MKL leaves unused, since the processor is not Intel's: an
    AMD EPYC of the fifth generation makes 220 billion operations a second with it and 105 without.
    On Intel's own it takes a tenth longer, twice as long for some transposed matrices, and with
    AVX2 alone a twentieth.

    Example:
        >>> prefers_onednn() in (True, False)
        True
    """
    if not torch.backends.mkldnn.is_available():
        return False
    processor = torch.cpu.get_capabilities()
    return processor.get("avx512_f", False) and "Intel" not in processor["cpu_name"]
