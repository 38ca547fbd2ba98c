"""Exact distances to the k-th nearest neighbour, at any number of states."""

import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn import functional as F

from evaluation.progress import Progress, silent

# Up to here a tree visits fewer states than it costs; measured in benchmarks/evaluation.py.
_TREE_FEATURES = 7
_QUERIES = 2**14
# States of a tile, whose products stay in the cache; groups of this many are looked at as one.
_TILE, _GROUP = 2048, 16
# Candidates beyond the k + 1 that would do without rounding errors: fewer states are in doubt.
_SPARE = 2
# How many more candidates may gather before the farthest are dropped.
_WAITING = 48
# Elements of candidates, and of tables, that are measured at once: stays in the cache; in memory.
_MEASURED, _TABLE = 2**16, 2**25
# Through products, distances would lose half of their digits.
_DIRECT = "donot_use_mm_for_euclid_dist"


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
    # Rounding errors grow with the norms, which are smallest around the mean.
    precise = states.double()
    precise = precise - precise.mean(0)
    candidates, bound = _search(precise, min(k + 1 + _SPARE, len(states)), progress)
    size = max(1, _MEASURED // (candidates.shape[1] * precise.shape[1]))
    distances = torch.cat(
        [
            _measure(some.unsqueeze(1), precise[others], k).squeeze(1)
            for some, others in zip(precise.split(size), candidates.split(size), strict=True)
        ]
    )
    certain = distances.square() <= bound
    for rows in (~certain).nonzero().squeeze(1).split(max(1, _TABLE // precise.numel())):
        distances[rows] = _measure(precise[rows], precise, k)
    return distances


def _measure(states: Tensor, others: Tensor, k: int) -> Tensor:
    """Distances [*, n] to the k-th nearest of others [*, m, F], after the state itself."""
    return torch.cdist(states, others, compute_mode=_DIRECT).kthvalue(k + 1, dim=-1).values


def _search(states: Tensor, number: int, progress: Progress) -> tuple[Tensor, Tensor]:
    """Find the nearest states by |x|^2 / 2 + |y|^2 / 2 - xy, half of the squared distance.

    A tile of these serves the states of its rows and those of its columns, so that half of the
    tiles will do. The states are shuffled, because then ever fewer are nearer than those before.

    Args:
        states: states [n, F], float64, around their mean.
        number: how many to find.
        progress: is told how many states are done, and of how many.

    Returns:
        The nearest of each state [n, number], and the square [n] of a distance below which there
        is surely no other.
    """
    order = torch.randperm(len(states), generator=torch.Generator().manual_seed(0))
    norms = states.square().sum(1)
    # Whole tiles, filled up with states that are farther than any. If that is infinite, no score
    # is to be trusted, and neither is any below.
    fill, far = -len(states) % _TILE, float((4 * norms.max() + 1).float())
    points = F.pad(states[order].float(), (0, 0, 0, fill))
    halves = F.pad(norms[order] / 2, (0, fill), value=far).float()
    halves, ones = halves.unsqueeze(1), torch.ones(len(points), 1)
    rows = torch.cat([points, halves, ones], 1).split(_TILE)
    columns = torch.cat([-points, ones, halves], 1).split(_TILE)
    nearest = [_Nearest(number) for _ in rows]
    pairs = torch.combinations(torch.arange(len(rows)), with_replacement=True).tolist()
    scores = torch.empty(_TILE, _TILE)
    for done, (i, j) in enumerate(pairs):
        progress(done * len(states) // len(pairs), len(states))
        torch.mm(rows[i], columns[j].T, out=scores)
        nearest[i].add_columns(scores, j * _TILE)
        if i != j:
            nearest[j].add_rows(scores, i * _TILE)
    found = [some.drop() for some in nearest]
    index, limit = (torch.cat(parts)[order.argsort()] for parts in zip(*found, strict=True))
    # Higham's bound on the rounding error of an inner product.
    unit = torch.finfo(torch.float32).eps / 2
    error = 1.1 * (states.shape[1] + 4) * unit * far
    return order[index], (2 * limit.double() - error).clamp(min=0)


class _Nearest:
    """The nearest of those that a tile of states has met.

    Searching all scores takes longer than computing them. So what is searched first are the minima
    of groups, and only for what is nearer than the farthest that is kept.

    Args:
        number: how many to keep.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.scores = torch.full((_TILE, number + _WAITING), torch.inf)
        self.index = torch.zeros(_TILE, number + _WAITING, dtype=torch.int)
        self.count = torch.zeros(_TILE, dtype=torch.long)
        self.limit = torch.full((_TILE,), torch.inf)

    def add_columns(self, scores: Tensor, first: int) -> None:
        """Meet the states of a tile's columns, the first of which has this index."""
        # The members of a group are spread over the row: minima are fastest across whole vectors.
        groups = scores.unflatten(1, (_GROUP, -1))
        minima = groups.amin(1)
        self._begin(minima)
        row, group = (minima < self.limit.unsqueeze(1)).nonzero().T
        hit, member, found = self._nearer(row, groups[row, :, group])
        self._keep(row[hit], found, first + member * minima.shape[1] + group[hit])

    def add_rows(self, scores: Tensor, first: int) -> None:
        """Meet the states of a tile's rows: these are those of its columns."""
        groups = scores.unflatten(0, (-1, _GROUP))
        minima = groups.amin(1)
        self._begin(minima.T)
        # Group by group, so that their members are in the cache.
        group, row = (minima < self.limit).nonzero().T
        hit, member, found = self._nearer(row, groups[group, :, row])
        row, order = row[hit].sort(stable=True)
        self._keep(row, found[order], (first + group[hit] * _GROUP + member)[order])

    def _begin(self, minima: Tensor) -> None:
        if not self.count.any() and self.number <= minima.shape[1]:
            # In as many groups there is one that is as near as this.
            least = minima.contiguous().kthvalue(self.number, dim=1).values
            self.limit = least.nextafter(torch.tensor(torch.inf))

    def _nearer(self, row: Tensor, members: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Those members [hits, group] that are near enough: whose, which, and their scores."""
        hit, member = (members < self.limit[row].unsqueeze(1)).nonzero().T
        return hit, member, members[hit, member]

    def drop(self) -> tuple[Tensor, Tensor]:
        """Keep the nearest only: their indices [tile, number], and the farthest's score [tile]."""
        scores, chosen = self.scores.topk(self.number, dim=1, largest=False)
        index = self.index.gather(1, chosen)
        self.scores = F.pad(scores, (0, _WAITING), value=torch.inf)
        self.index = F.pad(index, (0, _WAITING))
        self.count, self.limit = self.count.clamp(max=self.number), scores[:, -1]
        return index.long(), self.limit

    def _keep(self, row: Tensor, scores: Tensor, index: Tensor) -> None:
        """Write what was found behind what is there; the rows are in order."""
        new = row.bincount(minlength=_TILE)
        place = torch.arange(len(row)) + (self.count - new.cumsum(0) + new)[row]
        self.count += new
        missing = int(self.count.max()) - self.scores.shape[1]
        if missing > 0:
            self.scores = F.pad(self.scores, (0, missing), value=torch.inf)
            self.index = F.pad(self.index, (0, missing))
        self.scores[row, place] = scores
        self.index[row, place] = index.int()
        if missing > 0:
            self.drop()
