import pytest
import torch
from torch import Tensor
from torch._inductor import cpp_builder

from sipo_trl.training import RunError
from sipo_trl.training.compilation import compiled


class Doubling:
    def of(self, numbers: Tensor) -> Tensor:
        return 2 * numbers


@pytest.fixture
def without_compiler():
    """As where neither g++ nor what CXX names is there."""
    cpp_builder.cpp_compiler_search.cache_clear()  # torch looks only once
    with torch._inductor.config.patch({"cpp.cxx": (None, "no-such-compiler")}):
        yield
    cpp_builder.cpp_compiler_search.cache_clear()


def test_a_missing_compiler_is_one_sentence_before_anything_is_compiled(without_compiler):
    with pytest.raises(RunError, match=r"need a C\+\+ compiler, and none was found: install g\+\+"):
        compiled(Doubling().of)


def test_objects_of_one_class_are_compiled_each_by_itself():
    class Scaling:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def of(self, numbers: Tensor) -> Tensor:
            return self.factor * numbers

    ones = torch.ones(3)
    scaled = [compiled(Scaling(factor).of)(ones) for factor in (2.0, 3.0)]
    assert [some.tolist() for some in scaled] == [[2.0] * 3, [3.0] * 3]
