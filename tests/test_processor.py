import pytest
import torch

from sipo_trl.processor import prefers_onednn


@pytest.mark.parametrize(
    ("capabilities", "prefers"),
    [
        ({"cpu_name": "AMD EPYC 9B45", "avx512_f": True}, True),
        ({"cpu_name": "AMD EPYC 7B13", "avx512_f": False}, False),
        ({"cpu_name": "Intel Xeon", "avx512_f": True}, False),
        ({"architecture": "aarch64"}, False),
    ],
)
def test_onednn_multiplies_where_mkl_leaves_avx512_unused(capabilities, prefers, monkeypatch):
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert prefers_onednn.__wrapped__() is prefers


def test_this_processor_is_described_as_expected():
    processor = torch.cpu.get_capabilities()
    if "avx512_f" in processor:
        assert processor["avx512_f"] == torch.cpu._is_avx512_supported()
        assert processor["cpu_name"]
