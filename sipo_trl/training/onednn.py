"""Products of compiled code through oneDNN instead of MKL."""

import torch
from torch import Tensor, fx
from torch._inductor import ir, mkldnn_ir
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch._inductor.lowering import register_lowering

aten = torch.ops.aten

# With less in any direction, MKL is as fast or faster.
_LEAST = 64


@torch.library.custom_op("sipo_trl::linear", mutates_args=())
def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``inputs @ weight.T + bias`` of matrices [n, in] and [out, in], by oneDNN.

    Example:
        >>> linear(torch.ones(2, 3), torch.ones(1, 3), torch.ones(1))
        tensor([[4.],
                [4.]])
    """
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


@linear.register_fake
def _(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return inputs.new_empty(len(inputs), len(weight))


# Torch's own rule takes only weights that never change.
@register_lowering(torch.ops.sipo_trl.linear.default)
def _(inputs: ir.TensorBox, weight: ir.TensorBox, bias: ir.TensorBox | None) -> ir.TensorBox:
    return ir.TensorBox.create(mkldnn_ir.LinearUnary.create(inputs, weight, bias, "none", [], ""))


class ProductsThroughOneDNN(CustomGraphPass):
    """Replaces the larger products of float32 matrices in a graph that is about to be compiled."""

    def __call__(self, graph: fx.Graph) -> None:
        """Replace them."""
        for target in (aten.mm.default, aten.addmm.default):
            for node in graph.find_nodes(op="call_function", target=target):
                if _is_large(node):
                    _replace(node)

    def uuid(self) -> bytes:
        """What compiled graphs are kept by."""
        return get_hash_for_files((__file__,))


def _is_large(node: fx.Node) -> bool:
    *bias, left, right = (argument.meta["val"] for argument in _matrices(node))
    sizes = [*left.shape, right.shape[1]]
    return (
        not node.kwargs
        and left.dtype == torch.float32
        and left.device.type == "cpu"
        and all(isinstance(size, int) and size >= _LEAST for size in sizes)
        and all(some.ndim == 1 for some in bias)
    )


def _replace(node: fx.Node) -> None:
    *bias, left, right = _matrices(node)
    graph = node.graph
    with graph.inserting_before(node):
        weight = graph.call_function(aten.permute.default, (right, [1, 0]))
        weight.meta["val"] = right.meta["val"].t()
        operator = torch.ops.sipo_trl.linear.default
        product = graph.call_function(operator, (left, weight, bias[0] if bias else None))
    product.meta.update(node.meta)
    node.replace_all_uses_with(product)
    graph.erase_node(node)


def _matrices(node: fx.Node) -> list[fx.Node]:
    """Return the factors of a product, after what is added to it, if anything is."""
    return [argument for argument in node.args if isinstance(argument, fx.Node)]
