"""Functions that are called thousands of times, as C++."""

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

import torch

from sipo_trl.processor import prefers_onednn
from sipo_trl.training.run_folder import RunError

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of tensors, gradients included, into one graph.

    For functions about which nothing changes between calls but the numbers in tensors and their
    shapes, and that are always called with gradients, or always without. Looking at everything
    else whenever one is called would take a tenth of a small update. Once it has been called, it
    may be called in any thread.

    Args:
        function: what to compile, a method; at its first call, which takes some seconds.
    """
    _require_compiler()
    if torch.cpu._is_avx2_supported():
        # To find out whether vector instructions work, torch 2.13 lets a process use them, and
        # takes them for broken if that process fails for whatever reason. Where it crashes as it
        # ends, all loops would be over single numbers, and an update takes twice the time.
        torch._inductor.config.cpp.vec_isa_ok = True
    # Without it the backward pass would leave the graph.
    torch._dynamo.config.trace_autograd_ops = True
    options: dict[str, Any] = {
        "guard_filter_fn": torch.compiler.keep_tensor_guards_unsafe,
        "cpp_wrapper": True,  # C++ all through, which lets other threads run meanwhile
    }
    if prefers_onednn():
        from sipo_trl.training.onednn import ProductsThroughOneDNN  # which loads the compiler

        options["post_grad_custom_post_pass"] = ProductsThroughOneDNN()
    graph: Callable[P, R] = torch.compile(_with_own_code(function), options=options)
    return graph


def _require_compiler() -> None:
    from torch._inductor import cpp_builder, exc

    try:
        cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler as error:
        raise RunError(
            "ppo.compile and collector.compile need a C++ compiler, and none was found: install "
            "g++, or say which one to use with CXX=PATH in the environment, or leave them out."
        ) from error


def _with_own_code(method: Any) -> Any:
    """The same method, of one object alone.

    Torch keeps what it has compiled with a method's code, which all objects of a class share, and
    without guards would take that of one for another's. (Its ``isolate_recompiles`` tells them
    apart by a number that all threads share.)
    """
    function = method.__func__
    own = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return MethodType(own, method.__self__)
