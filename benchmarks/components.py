"""The parts of SIPO, each against the plain way to do the same."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torchrl.modules import set_recurrent_mode
from torchrl.objectives.value import GAE

from benchmarks.memory import in_fresh_process, peak_anonymous, resident
from benchmarks.peers import ModuleCritics, cdist_reward
from benchmarks.precision import FASTEST_PRECISION
from benchmarks.table import Row, main
from benchmarks.timing import check_equal, compare, in_turns, make_row
from benchmarks.updates import growth
from sipo_trl.archive import Archive
from sipo_trl.measures import RBFMeasure, WassersteinMeasure
from sipo_trl.measures.wasserstein import Precision
from sipo_trl.models import MaskedGRU
from sipo_trl.objectives import MultiHeadGAE

VARIANCE = 0.02
CDIST = "torch.cdist, squared, exp, mean"
PLAIN = "torch.load"


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 3 if quick else 15
    torch.manual_seed(0)
    yield rbf_against_product(144, rounds=rounds)
    yield rbf_against_product(2, rounds=rounds)
    yield rbf_against_cdist(144, rounds=rounds)
    yield from rbf_memory()
    for batch in (16, 32, 64, 256, 4000):
        yield critics_speed(batch, rounds=rounds)
    # Where there is but float32, the rows above show it already.
    for batch in (256, 4000) if FASTEST_PRECISION == "bfloat16" else ():
        yield critics_speed(batch, rounds=rounds, precision="float32", most_ratio=None)
        yield critics_speed(batch, rounds=rounds, autocast=True, most_ratio=None)
    yield gae_speed(rounds=rounds)
    for steps in (10, 100):
        yield gru_speed(steps, rounds=rounds)
    yield from archive_opening(rounds=rounds)
    # What one entry adds is a small difference of large numbers.
    yield from growth(rounds=2 * rounds)


def rbf_against_product(
    features: int, *, rounds: int, states: int = 4000, references: int = 10_000
) -> Row:
    """Compare the RBF reward with a bare product of its size, plus exp where that is the most."""
    some, others = _cloud(states, features), _cloud(references, features)
    measure = RBFMeasure([others], variance=VARIANCE, normalize=False)
    what = f"RBF reward, {states} x {references} states of {features} features"
    exact = cdist_reward(some[:100].double(), others.double(), VARIANCE)
    check_equal(what, measure.reward(some[:100])[:, 0].double(), exact, rtol=1e-5)
    # Into memory that is there already: the first touch of new memory is not arithmetic.
    product = torch.empty(states, references)
    with_exp = features < 10
    return compare(
        what,
        lambda: measure.reward(some),
        "x @ y.T and exp, in place" if with_exp else "x @ y.T, in place",
        (lambda: torch.mm(some, others.T, out=product).exp_())
        if with_exp
        else (lambda: torch.mm(some, others.T, out=product)),
        rounds=rounds,
        most_ratio=2.0 if with_exp else 1.6,
    )


def rbf_against_cdist(
    features: int, *, rounds: int, states: int = 4000, references: int = 10_000
) -> Row:
    """Compare the RBF reward with ``torch.cdist``."""
    some, others = _cloud(states, features), _cloud(references, features)
    measure = RBFMeasure([others], variance=VARIANCE, normalize=False)
    what = f"RBF reward, {states} x {references} states of {features} features"
    theirs = cdist_reward(some, others, VARIANCE)
    check_equal(what, measure.reward(some)[:, 0], theirs, rtol=1e-3)
    return compare(
        what,
        lambda: measure.reward(some),
        CDIST,
        lambda: cdist_reward(some, others, VARIANCE),
        rounds=rounds,
        most_ratio=1 / 4,
    )


def rbf_memory(
    *, states: int = 4000, features: int = 144, sizes: tuple[int, int] = (50_000, 1_000_000)
) -> Iterator[Row]:
    """Measure the memory that an RBF reward takes beside an archive on disk."""
    with tempfile.TemporaryDirectory() as folder:
        extra = []
        for size in sizes:
            path = Path(folder, str(size))
            Archive.create(path).append(_cloud(size, features))
            extra.append(in_fresh_process(_reward_memory, path, states))
    plain = in_fresh_process(_cdist_memory, states, sizes[0], features)
    what = f"RBF measure and a reward, {states} x {{}} states of {features} features"
    small, large = (what.format(size) for size in sizes)
    yield make_row(small, extra[:1], CDIST, [plain], unit="B", most=64e6)
    yield make_row(large, extra[1:], f"ours at {sizes[0]}", extra[:1], unit="B", most=64e6)


def critics_speed(
    batch: int,
    *,
    rounds: int,
    precision: Precision = "auto",
    autocast: bool = False,
    most_ratio: float | None = 1 / 1.8,
    critics: int = 9,
    features: int = 72,
    check_updates: int = 3,
) -> Row:
    """Compare one update of all Wasserstein critics with one of each in a loop.

    Args:
        batch: number of states of either side.
        rounds: how often to measure.
        precision: what ours computes products in.
        autocast: whether the peer's products are in bfloat16; otherwise they are in float32.
        most_ratio: the greatest ratio of ours by theirs that is good enough.
        critics: their number.
        features: those of a state.
        check_updates: how many updates must give the same numbers before anything is timed.
    """
    what = f"update of {critics} critics, {batch} + {batch} states of {features} features"
    states = torch.randn(batch, features)
    references = [torch.randn(batch, features) + 0.1 * j for j in range(critics)]
    measure = WassersteinMeasure(references, normalize=False, precision=precision)
    # RMSprop turns the rounding error of a vanishing gradient into a full step, so that only
    # float64 tells a difference from noise.
    precise = WassersteinMeasure(references, normalize=False).double()
    peer = ModuleCritics(precise)
    for _ in range(check_updates):
        distance = precise.update(states.double())["distance"]
        check_equal(what, distance, peer.update(states.double()), rtol=1e-6)
    ours, theirs = precise.reward(states.double()), peer.reward(states.double())
    check_equal(what, ours, theirs, rtol=1e-6, atol=1e-9)
    peer = ModuleCritics(measure)

    def run_peer() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return peer.update(states)

    loop = f"{critics} modules with RMSprop, in a loop"
    return compare(
        f"{what}, products in {str(measure.product_dtype).removeprefix('torch.')}",
        lambda: measure.update(states),
        f"{loop}, autocast to bfloat16" if autocast else f"{loop}, in float32",
        run_peer,
        rounds=rounds,
        most_ratio=most_ratio,
    )


def gae_speed(*, rounds: int, envs: int = 64, steps: int = 400, heads: int = 5) -> Row:
    """Compare advantages of several heads with TorchRL's vectorised ones."""
    what = f"GAE, {steps} steps x {envs} environments x {heads} heads, 2 % ends"
    done = torch.rand(envs, steps, 1) < 0.02
    terminated = done & (torch.rand_like(done, dtype=torch.float32) < 0.5)
    batch = TensorDict(
        {
            "state_value": torch.randn(envs, steps, heads),
            "next": {
                "state_value": torch.randn(envs, steps, heads),
                "reward": torch.randn(envs, steps, heads),
                "done": done,
                "terminated": terminated,
            },
        },
        [envs, steps],
    )
    # TorchRL's takes several heads only if each has its own flags.
    expanded = batch.clone()
    for name in ("done", "terminated"):
        flags = batch["next", name].expand(-1, -1, heads).contiguous()
        expanded["next", name] = flags
    ours = MultiHeadGAE(gamma=0.99, lmbda=0.95, value_network=None)
    theirs = GAE(gamma=0.99, lmbda=0.95, value_network=None, vectorized=True)
    for key in ("advantage", "value_target"):
        check_equal(what, ours(batch)[key], theirs(expanded)[key], rtol=1e-4, atol=1e-4)
    return compare(
        what,
        lambda: ours(batch),
        "torchrl GAE(vectorized=True)",
        lambda: theirs(expanded),
        rounds=rounds,
        most_ratio=1 / 3,
    )


def gru_speed(
    steps: int, *, rounds: int, sequences: int = 64, agents: int = 3, size: int = 64
) -> Row:
    """Compare the GRU that can forget, forward and backward, with one that cannot."""
    what = f"GRU, {sequences} sequences x {agents} agents x {steps} steps, {size} units"
    ours = MaskedGRU(size, size, in_key="features", out_key="memory", agents=agents)
    theirs = nn.GRU(size, size, batch_first=True)
    theirs.load_state_dict({f"{name}_l0": value for name, value in ours.cell.state_dict().items()})
    features = torch.randn(sequences, steps, agents, size, requires_grad=True)
    data = TensorDict(
        recurrent_state=torch.zeros(sequences, steps, agents, size),
        is_init=torch.zeros(sequences, steps, 1, dtype=torch.bool),
        batch_size=[sequences, steps],
    )

    def run_ours() -> tuple[Tensor, ...]:
        with set_recurrent_mode(True):
            memory = ours(data.copy().set("features", features))["memory"]
        inputs = [features, *ours.parameters()]
        return memory, *torch.autograd.grad(memory.square().mean(), inputs)

    flat = features.detach().transpose(1, 2).flatten(0, 1).contiguous().requires_grad_()

    def run_theirs() -> tuple[Tensor, ...]:
        memory, _ = theirs(flat)
        return memory, *torch.autograd.grad(memory.square().mean(), [flat, *theirs.parameters()])

    for index, (our, their) in enumerate(zip(run_ours(), run_theirs(), strict=True)):
        our = our.transpose(1, 2).flatten(0, 1) if index < 2 else our
        check_equal(what, our, their, rtol=1e-3, atol=1e-5)
    return compare(what, run_ours, "torch.nn.GRU", run_theirs, rounds=rounds, most_ratio=1.3)


def archive_opening(*, rounds: int, states: int = 2_000_000, features: int = 18) -> Iterator[Row]:
    """Compare opening an archive with loading its states."""
    form = f"{states} states of {features} features"
    with tempfile.TemporaryDirectory() as folder:
        path, file = Path(folder, "archive"), Path(folder, "states.pt")
        content = torch.rand(states, features)
        Archive.create(path).append(content)
        torch.save(content, file)
        check_equal(form, Archive.open(path)[0].states, torch.load(file), rtol=0)
        times = in_turns(
            {
                "open": lambda: Archive.open(path),
                "map": lambda: Archive.open(path, verify=False)[0].states[-1].sum(),
                "check": lambda: Archive.open(path)[0].states[-1].sum(),
                "load": lambda: torch.load(file)[-1].sum(),
            },
            rounds=rounds,
        )
        opened = in_fresh_process(_open_memory, path)
        loaded = in_fresh_process(_load_memory, file)
    load = times["load"]
    yield make_row(f"open an archive, {form}", times["open"], PLAIN, load, most=10e-3)
    what = "open it and read a state"
    yield make_row(f"{what}, unchecked", times["map"], PLAIN, load, most=10e-3)
    yield make_row(f"{what}, SHA-256 checked", times["check"], PLAIN, load)
    yield make_row(f"memory to {what}", [opened], PLAIN, [loaded], unit="B", most=10e6)


def _cloud(number: int, features: int) -> Tensor:
    """Draw states near enough to each other for kernel values to be neither 0 nor 1."""
    return 0.3 * torch.randn(number, features)


def _reward_memory(path: Path, states: int) -> int:
    torch.set_num_threads(1)
    archive = Archive.open(path)
    some = _cloud(states, archive[0].states.shape[1])
    # What a library loads on its first use is no cost of a call.
    RBFMeasure([some[:10]], normalize=False).reward(some[:10])
    return peak_anonymous(lambda: RBFMeasure(archive, variance=VARIANCE).reward(some))


def _cdist_memory(states: int, references: int, features: int) -> int:
    torch.set_num_threads(1)
    some, others = _cloud(states, features), _cloud(references, features)
    cdist_reward(some[:10], others[:10], VARIANCE)
    return peak_anonymous(lambda: cdist_reward(some, others, VARIANCE))


def _open_memory(path: Path) -> int:
    before = resident("VmRSS")
    archive = Archive.open(path)
    archive[0].states[-1].sum()
    return resident("VmRSS") - before


def _load_memory(file: Path) -> int:
    before = resident("VmRSS")
    states = torch.load(file)
    states[-1].sum()
    return resident("VmRSS") - before


if __name__ == "__main__":
    sys.exit(main(only="components"))
