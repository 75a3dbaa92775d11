import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.bipartitions import extended_bipartitions
from tests.support.posets import all_posets

from isotone.counts import (
    DifferenceBodyMechanism,
    Method,
    PosetMechanism,
    Relaxation,
    relax,
    sample_extended_bipartition,
)
from isotone.counts import knorm as k_norm
from isotone.counts import relaxation as kept_draws
from isotone.counts import relaxation_tree as restoring
from isotone.counts import sampler as choosing
from isotone.counts import sampler as sources
from isotone.counts.relaxation_tree import Worth, missing_pairs
from isotone.counts.sampler import Recent, Sampler
from isotone.errors import InputError, OrderError
from isotone.mechanism import no_progress
from isotone.noise.simulate import public_stream
from isotone.order import Poset
from isotone.order.bipartitions import counting as bipartitions
from isotone.order.bipartitions.steps import steps
from isotone.order.bipartitions.walk import kept


def crown(k: int) -> Poset:
    """A prime order: each of k elements lies below its two neighbours of the k above."""
    return Poset(range(2 * k), [(i, k + j % k) for i in range(k) for j in (i, i + 1)])


def test_an_order_within_reach_is_its_own_relaxation():
    P = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
    assert relax(P).order(P) == P
    assert relax(P).dropped(P).shape == (0, 2)


@pytest.mark.parametrize("reach", [16, 64])
def test_a_relaxation_has_fewer_relations_and_smaller_blocks(reach):
    P = crown(4)
    found = relax(P, steps=3, reach=reach)
    Q = found.order(P)
    assert max(steps(Q).states, default=0) <= reach < max(steps(P).states)
    assert np.all(Q.leq_matrix() <= P.leq_matrix())
    assert bipartitions.count(Q) > bipartitions.count(P)
    pairs = found.dropped(P)
    assert len(pairs) == int(P.leq_matrix().sum() - Q.leq_matrix().sum()) > 0


def test_the_same_seed_finds_the_same_relaxation_and_other_seeds_find_others():
    P = crown(5)
    short, again, long = (relax(P, steps=k, reach=64, seed=3) for k in (10, 10, 40))
    assert short == again
    assert bipartitions.count(long.order(P)) < bipartitions.count(Poset.antichain(range(10)))
    assert len({relax(P, steps=1, reach=64, seed=s).relations for s in range(8)}) > 1


def test_progress_goes_up_and_ends_at_one():
    seen: list[float] = []
    relax(crown(4), steps=5, reach=16, progress=lambda fraction, what: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) == 6


def test_time_ends_a_search_after_one_step_at_least():
    P = crown(4)
    found = relax(P, steps=10**9, seconds=0.0, reach=16)
    assert steps(found.order(P)).within(16)
    with pytest.raises(InputError, match="at least one step"):
        relax(P, steps=0)


def test_a_relaxation_of_another_order_is_refused():
    with pytest.raises(OrderError, match="'a' implies 'b'"):
        Relaxation.of([["a", "b"]]).order(Poset.antichain("ab"))


def test_a_mechanism_takes_a_kept_relaxation_and_says_what_it_does():
    P = crown(3)
    kept = Relaxation.of([list(pair) for pair in P.covers[1:]])
    m = PosetMechanism(P, 1, relaxation=kept)
    assert m.method.name == "rejection"
    assert m.method.dropped == (P.covers[0],)
    exact = bipartitions.count(P) / bipartitions.count(kept.order(P))
    assert m.method.acceptance == pytest.approx(exact, abs=0.05)
    assert "draws fits" in str(m.method)
    assert m.norm(np.ones(6)) == 1
    own = PosetMechanism(P, 1)
    assert m.log_density(np.zeros(6)) == pytest.approx(own.log_density(np.zeros(6)), abs=0.1)
    doubt = np.hypot(m.error().standard_error, own.error().standard_error)
    assert np.all(np.abs(m.error().variance - own.error().variance) < 6 * doubt)
    assert m.total_variance() == pytest.approx(own.total_variance(), rel=0.05)
    assert m.release(np.zeros(6, int)).shape == (6,)


def test_a_mechanism_with_nothing_restored_uses_the_relaxed_ball_and_tells_its_cost():
    P = crown(3)
    kept = Relaxation(P.covers[2:], restored=())
    m = PosetMechanism(P, 1, relaxation=kept)
    assert m.method.name == "relaxed"
    exact = PosetMechanism(kept.order(P), 1).error().total / PosetMechanism(P, 1).error().total
    assert abs(m.method.cost - exact) < 6 * m.method.cost_error + 0.01
    assert m.method.cost > 1
    assert f"{m.method.cost:.3f}" in str(m.method)
    # the relaxed ball contains the order's own: records have norm 1 at most
    records = P.close_all(np.eye(6, dtype=bool)).astype(float)
    assert np.all(m.norm(records) <= 1)
    y = np.random.default_rng(0).normal(size=(50, 6))
    assert np.all(m.norm(y) <= PosetMechanism(P, 1).norm(y) + 1e-12)


def test_an_order_out_of_reach_is_relaxed_without_being_asked(monkeypatch):
    monkeypatch.setattr(choosing, "within_reach", lambda P: False)
    monkeypatch.setattr(choosing, "relax", lambda P, **_: Relaxation(P.covers[1:]))
    pairs = [(0, 1), (1, 2), (3, 2), (3, 4), (5, 4)]
    P = Poset(range(6), pairs).rename(lambda k: f"question {k}")  # samplers are kept by order: new names
    assert PosetMechanism(P, 1).method.name == "rejection"
    A, B = sample_extended_bipartition(P)
    assert set(A + B) == set(P.elements)
    monkeypatch.setattr(choosing, "relax", lambda P, **_: Relaxation(P.covers[1:], restored=()))
    with pytest.raises(InputError, match="out of reach"):
        sample_extended_bipartition(P.rename(lambda name: f"{name}?"))


def tall(k: int) -> Poset:
    """A crown with an element above each pair of neighbours of its upper level."""
    pairs = [(i, k + j % k) for i in range(k) for j in (i, i + 1)]
    return Poset(range(3 * k), pairs + [(k + i, 2 * k + j % k) for i in range(k) for j in (i, i + 1)])


@pytest.mark.parametrize("kind", [PosetMechanism, DifferenceBodyMechanism])
def test_relations_are_put_back_as_far_as_rejection_goes(kind):
    P = tall(4)
    Q = Relaxation(P.covers[::4])
    made = kind(P, 1).sampler
    for share in (0.5, 0.05):
        m = choosing.build_sampler(P, Q, no_progress, kind=type(made), share=share)
        assert m.method.name == "partly relaxed"
        assert np.all(Q.order(P).leq_matrix() <= m.order.leq_matrix())
        assert np.all(m.order.leq_matrix() <= P.leq_matrix())
        assert len(m.method.dropped) == int(P.leq_matrix().sum() - m.order.leq_matrix().sum()) > 0
        assert 0.5 * share < m.method.acceptance < 1
        assert 1 < m.method.cost < 3
        assert "draws fits" in str(m.method)
        assert f"{m.method.cost:.3f}" in str(m.method)
        again = choosing.build_sampler(P, m.relaxation, no_progress, kind=type(made))
        assert again.method == m.method
        assert again.order == m.order
        exact = math.exp(
            choosing.build_sampler(m.order, None, no_progress, kind=type(made)).log_count
            - choosing.build_sampler(Q.order(P), None, no_progress, kind=type(made)).log_count
        )
        assert m.method.acceptance == pytest.approx(exact, rel=0.25)
    all_of_it = choosing.build_sampler(P, Q, no_progress, kind=type(made), share=1e-9)
    assert all_of_it.method.name == "rejection"
    assert all_of_it.order == P


def test_relations_are_put_back_by_what_they_save_for_what_they_cost():
    """From all extended bipartitions, so exactly: what each pair saves with all that follows from it, and its price."""
    P, Q = Poset(range(5), [(0, 1), (1, 2), (3, 2), (3, 4)]), Poset(range(5), [(1, 2), (3, 4)])
    rows = [(A + B, len(A)) for A, B in extended_bipartitions(Q)]
    orders, sizes = np.array([row for row, _ in rows], np.int32), np.array([a for _, a in rows])
    related, missing = Q.leq_matrix() & ~np.eye(5, dtype=bool), missing_pairs(P, Q)
    worth = Worth(Sampler.given, P)
    found = worth(related, orders, sizes, missing)
    squares = Sampler.given(Q, orders, sizes).sum(axis=1)
    for (x, y), value in zip(missing.tolist(), found.tolist(), strict=True):
        larger = set(extended_bipartitions(Poset(range(5), [*Q.covers, (x, y)])))
        fits = np.array([(tuple(row[:a]), tuple(row[a:])) in larger for row, a in rows])
        saved = 1 - squares[fits].mean() / squares.mean()
        assert value == pytest.approx(saved / math.log(fits.mean()), rel=1e-9)
    # rows of two stages count by their number, and by the relations that each stage had
    assert worth(related, orders, sizes, missing) == pytest.approx(found, rel=1e-9)
    assert len(set(found.round(6).tolist())) > 2


@pytest.mark.parametrize("stage", [0.1, 0.4, 0.5])
def test_as_many_relations_are_put_back_as_enough_rows_have_with_all_that_follows(stage, monkeypatch):
    """From all extended bipartitions, in every sequence of the relations."""
    monkeypatch.setattr(restoring, "STAGE", stage)
    P, Q = Poset(range(5), [(0, 1), (1, 2), (3, 2), (3, 4)]), Poset(range(5), [(3, 4)])
    rows = [(A + B, len(A)) for A, B in extended_bipartitions(Q)]
    orders, sizes = np.array([row for row, _ in rows], np.int32), np.array([a for _, a in rows])
    related = Q.leq_matrix() & ~np.eye(5, dtype=bool)
    within = {Q.covers: {(row[:a], row[a:]) for row, a in rows}}
    for missing in permutations(missing_pairs(P, Q).tolist()):
        for least in (0.1, 0.6):
            larger, fits = restoring._most(related, np.array(missing), orders, sizes, least)
            best = Q
            for k in range(1, len(missing) + 1):
                order = Poset(range(5), [*Q.covers, *map(tuple, missing[:k])])
                if order.covers not in within:
                    within[order.covers] = set(extended_bipartitions(order))
                members = within[order.covers]
                if len(members) >= len(rows) * (least if k == 1 else max(least, stage)):
                    best = order
            assert np.array_equal(larger, best.leq_matrix() & ~np.eye(5, dtype=bool))
            members = within[best.covers]
            assert fits.tolist() == [(row[:a], row[a:]) in members for row, a in rows]
    assert len(within) > 5


def test_the_share_that_is_kept_is_estimated_once(monkeypatch):
    """A release that finds draws builds its sampler again with them, and the share is the same."""
    P = tall(3).rename(lambda name: f"once {name}")
    between, seen = Relaxation(P.covers[::2], P.covers[:8]), []
    real = choosing._kept
    monkeypatch.setattr(choosing, "_kept", lambda *given: seen.append(1) or real(*given))
    one, other, more = (
        choosing.build_sampler(P, found, no_progress)
        for found in (
            between,
            replace(between, draws=(("stream", (1,)),)),
            replace(between, restored=P.covers[:6]),
        )
    )
    assert one.drawn == other.drawn
    assert one.drawn.acceptance < more.drawn.acceptance
    assert len(seen) == 2


def test_an_order_between_costs_less_than_the_relaxed_one():
    P = tall(4)
    own, free = PosetMechanism(P, 1).error().total, PosetMechanism(Relaxation(P.covers[::4]).order(P), 1)
    between = PosetMechanism(P, 1, relaxation=Relaxation(P.covers[::4], P.covers[:12]))
    assert own < between.error().total < free.error().total
    assert between.release(np.zeros(12, int)).shape == (12,)
    records = P.close_all(np.eye(12, dtype=bool)).astype(float)
    assert np.all(between.norm(records) <= 1)


def test_draws_that_are_kept_break_no_relation():
    P = tall(3)
    Q = Relaxation(P.covers[::3])
    made, pairs = bipartitions.tables(Q.order(P)), missing_pairs(P, Q.order(P))
    orders, sizes = bipartitions.draw(made, 300, *sources.seeded(np.random.default_rng(0)), pairs)
    assert kept(orders, sizes, pairs).all()


def test_a_relaxation_is_plain_values_and_back():
    kept = Relaxation.of([["a", "b"]], [["b", "c"]])
    assert Relaxation.from_plain(kept.plain()) == kept
    assert Relaxation.from_plain([["a", "b"]]) == Relaxation((("a", "b"),))
    for wrong in (
        7,
        {"restored": []},
        {"relations": [["a"]]},
        {"relations": [[1, 2]]},
        {"relations": "ab"},
        {"x": []},
    ):
        with pytest.raises(InputError, match="relaxation"):
            Relaxation.from_plain(wrong)
    with pytest.raises(OrderError, match="'b' implies 'c'"):
        kept.kept(Poset("abc", [("a", "b")]))


def test_simulations_wander_where_rejection_keeps_few(monkeypatch):
    P = crown(3)
    m = PosetMechanism(P, 1, relaxation=Relaxation(P.covers[1:]))
    monkeypatch.setattr(sources, "RARE", 1.0)
    orders, sizes = m.sampler.simulate(50, np.random.default_rng(0))
    assert orders.shape == (50, 6)
    assert kept(orders, sizes, np.argwhere(P.leq_matrix() & ~np.eye(6, dtype=bool))).all()
    assert len({tuple(row) for row in orders.tolist()}) > 10


def test_methods_are_values():
    assert Method("exact") == Method("exact")
    assert Method("relaxed", (("a", "b"),), cost=1.5) != Method("exact")


def test_dropping_a_relation_never_lowers_the_total_error_but_may_lower_that_of_one_count():
    """Every relation of every order of up to four elements whose errors are exact, with and without it."""
    pairs = 0
    for P in (P for n in (2, 3, 4) for P in all_posets(n)):
        full = PosetMechanism(P, 1).error()
        for cover in P.covers:
            others = [
                (a, b) for a in P.elements for b in P.elements if a != b and P.leq(a, b) and (a, b) != cover
            ]
            relaxed = PosetMechanism(Poset(P.elements, others), 1).error()
            if full.method == relaxed.method == "exact":
                assert relaxed.total >= full.total - 1e-9
                pairs += 1
    assert pairs > 20
    chain, free = (
        PosetMechanism(Poset.chain("ab"), 1).error(),
        PosetMechanism(Poset.antichain("ab"), 1).error(),
    )
    assert chain.variance == pytest.approx([2, 4])
    assert free.variance == pytest.approx([10 / 3, 10 / 3])


@pytest.fixture
def slow(monkeypatch):
    """Every draw that is rejected counts as slow, however small the order."""
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    monkeypatch.setattr(sources, "RARE", 1.1)
    monkeypatch.setattr(k_norm, "SECONDS", 0.0)
    monkeypatch.setattr(choosing, "_recent", Recent[Sampler](4))


@pytest.mark.parametrize("kind", [PosetMechanism, DifferenceBodyMechanism])
def test_a_law_is_the_same_with_and_without_what_says_where_its_draws_begin(slow, kind, monkeypatch):
    P = tall(3)
    told = Relaxation(P.covers[::3], P.covers[:6])
    first = kind(P, 1, relaxation=told)
    assert first.law_draws == k_norm.FEWEST
    widths = first.half_widths()
    described = first.sampler.described(first.law_draws)
    assert described is not None
    ((stream, words),) = described.draws
    assert len(words) == first.law_draws
    assert stream.endswith("balanced") == (kind is DifferenceBodyMechanism)
    pairs = ([[str(x), str(y)] for x, y in part] for part in (described.relations, described.restored or ()))
    assert Relaxation.from_plain(described.plain()) == Relaxation.of(
        next(pairs), next(pairs), {stream: words}
    )

    def only_what_was_told(made, size, words, settle, start, dropped):
        assert size == 1
        return bipartitions.draw_at(made, size, words, settle, start, dropped)

    with monkeypatch.context() as patch:
        patch.setattr(kept_draws, "draw_at", only_what_was_told)
        again = kind(P, 1, relaxation=described)
        assert np.array_equal(again.half_widths(), widths)
        assert np.array_equal(again.unrounded_half_widths(), first.unrounded_half_widths())
    part = replace(described, draws=((stream, words[:100]),))
    part_told = kind(P, 1, relaxation=part).sampler
    whole = first.sampler.simulate_independent(300, public_stream("isotone law 1 draws "))
    assert np.array_equal(
        part_told.simulate_independent(300, public_stream("isotone law 1 draws "))[0], whole[0]
    )
    assert part_told._kept is not None
    assert part_told._kept.known[stream] == words[:300]


def test_words_that_begin_no_draw_or_overlap_are_refused(slow):
    P = tall(3)
    m = PosetMechanism(P, 1, relaxation=Relaxation(P.covers[::3], P.covers[:6]))
    m.half_widths()
    described, draws = m.sampler.described(500), m.sampler._kept
    assert described is not None
    assert draws is not None
    ((stream, words),) = described.draws
    idle = next(word for word in range(words[-1]) if draws._walk(stream, word, 1)[2][0] != word)
    for wrong in ((idle,), (words[0], words[0] + 1)):
        forged = PosetMechanism(P, 1, relaxation=replace(described, draws=((stream, wrong),)))
        with pytest.raises(InputError, match="None that fits"):
            forged.half_widths()


@pytest.mark.parametrize("draws", [7, {"x": 7}, {"x": [2, 1]}, {"x": [1, 1]}, {"x": [-1]}, {"x": [True]}, {"x": [1.0]}, {"x": [2**62]}])  # fmt: skip
def test_draws_that_are_not_ascending_whole_numbers_are_refused(draws):
    with pytest.raises(InputError, match="draws"):
        Relaxation.from_plain({"relations": [], "draws": draws})


def test_streams_have_their_own_draws_and_rows_are_uniform(slow):
    """Rows of one stream against all extended bipartitions (false alarm 1e-7); other streams have other rows."""
    P = Poset(range(4), [(0, 1), (2, 1), (2, 3)])
    sampler = PosetMechanism(P, 1, relaxation=Relaxation(((0, 1),), P.covers)).sampler
    every = bipartitions.count(P)
    one, other = (sampler.simulate_independent(60 * every, np.random.default_rng(s)) for s in (1, 2))
    assert not np.array_equal(one[0], other[0])
    seen = Counter((*row, int(a)) for row, a in zip(one[0].tolist(), one[1], strict=True))
    assert len(seen) == every
    assert chi2.sf(sum((k - 60) ** 2 / 60 for k in seen.values()), every - 1) > 1e-7


def test_a_relaxation_that_restores_what_rejection_cannot_afford_is_refused(monkeypatch):
    monkeypatch.setattr(choosing, "_acceptance", lambda *_: 1e-7)
    P = crown(4)
    with pytest.raises(InputError, match=r"About 1 in 1e\+07 draws .* Restore fewer"):
        PosetMechanism(P, 1, relaxation=Relaxation(P.covers[::2], P.covers))
