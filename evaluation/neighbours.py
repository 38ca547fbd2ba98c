"""Exact distances to the k-th nearest neighbour, at any number of states."""

import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn import functional as F

from evaluation.progress import Progress, silent

# Up to here a tree visits fewer states than it costs; measured in benchmarks/evaluation.py.
_TREE_FEATURES = 7
_QUERIES = 2**14
# Columns of a tile of products, which stays in the cache; minima over groups of this many columns,
# and over groups of such minima, are searched before the products.
_TILE, _GROUP = 2048, 8
# Rows of products at once, and how many elements they may have: bounds memory.
_ROWS, _TABLE = 512, 2**25
# Candidates beyond the k + 1 that would do without rounding errors: fewer rows are in doubt.
_SPARE = 4
# Elements of candidates that are measured at once: they, too, stay in the cache.
_MEASURED = 2**16
# Through products, distances would lose half of their digits.
_DIRECT = "donot_use_mm_for_euclid_dist"
# Stands for the distance to what is not there; infinity times zero would be no number.
_FAR = 1e30


def kth_neighbour_distances(states: Tensor, k: int, *, progress: Progress = silent) -> Tensor:
    """Distance from each state to its k-th nearest other state.

    Few features take a k-d tree, many take products of matrices in tiles. Either way the result
    is exact: candidates that float32 products find are measured again in float64, and rows in
    which their rounding error might have hidden a neighbour are computed in float64 throughout.

    Args:
        states: states [n, *F].
        k: which neighbour; equal states are neighbours at distance 0.
        progress: is told how many states are done, and of how many.

    Returns:
        Distances [n], float64.

    Examples:
        >>> kth_neighbour_distances(torch.tensor([[0.0], [1.0], [3.0], [3.0]]), k=2)
        tensor([3., 2., 2., 2.], dtype=torch.float64)
    """
    flat = states.detach().flatten(1)
    if not 1 <= k < len(flat):
        raise ValueError(
            f"k is {k}, but there are {len(flat)} states: give a k from 1 to {len(flat) - 1}, or "
            "more states."
        )
    if not flat.isfinite().all():
        raise ValueError("There are states that are not finite: look for NaN where they come from.")
    if flat.shape[1] <= _TREE_FEATURES:
        return _by_tree(flat, k, progress)
    return _by_products(flat, k, progress)


def _by_tree(states: Tensor, k: int, progress: Progress) -> Tensor:
    points = states.double().numpy()
    tree, threads, pieces = cKDTree(points), torch.get_num_threads(), []
    for first in range(0, len(points), _QUERIES):
        progress(first, len(points))
        some = points[first : first + _QUERIES]
        # The nearest of all is the point itself, or its double.
        pieces.append(torch.from_numpy(tree.query(some, k=[k + 1], workers=threads)[0][:, 0]))
    return torch.cat(pieces)


def _by_products(states: Tensor, k: int, progress: Progress) -> Tensor:
    size = min(_ROWS, max(1, _TABLE // len(states)))
    search = _ProductSearch(states, size, min(k + 1 + _SPARE, len(states)))
    pieces = []
    for rows in torch.arange(len(states)).split(size):
        progress(int(rows[0]), len(states))
        pieces.append(search(rows, k))
    distances, certain = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    precise = search.precise
    for rows in (~certain).nonzero().squeeze(1).split(max(1, _TABLE // precise.numel())):
        table = torch.cdist(precise[rows], precise, compute_mode=_DIRECT)
        distances[rows] = table.kthvalue(k + 1, dim=1).values
    return distances


class _ProductSearch:
    """Finds nearest states by |y|^2 / 2 - xy, which orders the states y by their distance to x.

    Searching all products takes longer than computing them. So minima over groups of states, and
    over groups of groups, are taken while a tile is in the cache, and the search descends from the
    least of them to their members. The members of a group are spread over its tile, because minima
    are fastest across whole rows.

    Args:
        states: states [n, F].
        rows: for how many of them to search at once.
        candidates: how many of the nearest are measured in float64.
    """

    def __init__(self, states: Tensor, rows: int, candidates: int) -> None:
        # Rounding errors grow with the norms, which are smallest around the mean.
        precise = states.double()
        self.precise = precise - precise.mean(0)
        self.norms = self.precise.square().sum(1)
        self.candidates = candidates
        # Higham's bound on the rounding error of an inner product.
        unit = torch.finfo(torch.float32).eps / 2
        self.error = float(4 * (states.shape[1] + 4) * unit * self.norms.max())
        # Whole tiles; the last feature adds half of the squared norm.
        filled = F.pad(self.precise.float(), (0, 1, 0, -len(states) % _TILE))
        filled[:, -1] = _FAR
        filled[: len(states), -1] = self.norms / 2
        self.tiles = [tile.T.contiguous() for tile in filled.split(_TILE)]
        # The products, and the minima above them.
        widths = (_TILE, _TILE // _GROUP, _TILE // _GROUP**2)
        self.levels = [torch.empty(len(self.tiles), rows, width) for width in widths]

    def __call__(self, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Distances [rows] to the k-th nearest other state, and whether they are exact for sure."""
        self._fill(rows)
        *below, top = (level[:, : len(rows)] for level in self.levels)
        flat = top.transpose(0, 1).flatten(1)
        chosen, bound = _least(flat, self.candidates)
        tile, column = chosen // top.shape[2], chosen % top.shape[2]
        row = torch.arange(len(rows)).unsqueeze(1)
        for level in reversed(below):
            offsets = torch.arange(0, level.shape[2], level.shape[2] // _GROUP)
            column = (column.unsqueeze(2) + offsets).flatten(1)
            tile = tile.repeat_interleave(_GROUP, dim=1)
            chosen, others = _least(level[tile, row, column], self.candidates)
            tile, column = tile.gather(1, chosen), column.gather(1, chosen)
            bound = torch.minimum(bound, others)
        index = tile * _TILE + column
        size = max(1, _MEASURED // (index.shape[1] * self.precise.shape[1]))
        pieces = zip(rows.split(size), index.split(size), strict=True)
        distances = torch.cat([self._measure(some, others, k) for some, others in pieces])
        limit = 2 * bound.double() + self.norms[rows] - self.error
        return distances, distances.square() <= limit.clamp(min=0)

    def _fill(self, rows: Tensor) -> None:
        """Compute the products of some states with all, and their minima."""
        own = F.pad(self.precise[rows].float().neg_(), (0, 1), value=1.0)
        for tile, *levels in zip(self.tiles, *self.levels, strict=True):
            products, *minima = (level[: len(rows)] for level in levels)
            torch.mm(own, tile, out=products)
            for level in minima:
                torch.amin(products.unflatten(1, (_GROUP, -1)), 1, out=level)
                products = level

    def _measure(self, rows: Tensor, index: Tensor, k: int) -> Tensor:
        """Distances [rows], in float64, to the k-th nearest other of some states."""
        beyond = index >= len(self.precise)
        others = self.precise[index.clamp(max=len(self.precise) - 1)]
        own = self.precise[rows].unsqueeze(1)
        distances = torch.cdist(own, others, compute_mode=_DIRECT).squeeze(1)
        return distances.masked_fill(beyond, torch.inf).kthvalue(k + 1, dim=1).values


def _least(values: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Where the least values of each row are [n, number], and the least of the others [n]."""
    if values.shape[1] <= number:
        index = torch.arange(values.shape[1]).expand(len(values), -1)
        return index, values.new_full((len(values),), torch.inf)
    least, index = values.topk(number + 1, dim=1, largest=False)
    return index[:, :-1], least[:, -1]
