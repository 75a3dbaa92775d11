"""What strangers and readers do with published counts: verify, read, derive, attack by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotone.audit.exact import audit_count_mechanism, example_of
from isotone.counts.count_plan import count_mechanism, count_mechanisms
from isotone.counts.knorm import PosetMechanism
from isotone.counts.margins import MarginsMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.sampler import mean_of_rows
from isotone.errors import InputError
from isotone.mechanism import HasGroups, Progress
from isotone.noise.simulate import public_stream
from isotone.privacy.checks import truth
from isotone.privacy.guarantee import Guarantee, Number
from isotone.release.kinds.counts.columns import (
    breakdown_columns,
    count_columns,
    has_margins,
    known_errors,
    law_entry,
    margins_recipe,
    original_columns,
    wave_faults,
)
from isotone.release.kinds.counts.derived import (
    as_drawn,
    combine_counts,
    consistent_breakdown,
    consistent_columns,
    draws_of,
    given,
    groups_of,
    made_consistent,
    measured_tables,
    mechanism_of,
    origins,
    total_guarantee,
)
from isotone.release.kinds.counts.description import CountManifest, Counts
from isotone.release.kinds.counts.reader import BreakdownReader, margins_of
from isotone.release.kinds.counts.report import BreakdownPage, CountsPage
from isotone.release.kinds.kind import TOLERANCES, Kind, Reader, agrees, require_unit
from isotone.release.manifest import (
    Columns,
    Floats,
    Manifest,
    guarantee_from,
    order_from,
    rebuild_count_mechanism,
    recipe_of,
)
from isotone.release.result import Release

if TYPE_CHECKING:
    from isotone.audit.exact import AuditReport


class CountsKind(Kind):
    """Counts over a partial order."""

    described = Counts
    manifest = CountManifest
    classes = (*count_mechanisms(), MarginsMechanism.__name__)

    def page(self, release: Release) -> CountsPage:
        """What the report says and draws."""
        return BreakdownPage() if has_margins(release.manifest) else CountsPage()

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """A mechanism on a survey of three questions. Of margins, the noise of one cell."""
        name = PosetMechanism.__name__ if name == MarginsMechanism.__name__ else name
        return audit_count_mechanism(example_of(count_mechanism(name), epsilon), trials, progress)

    def consistent(self, release: Release, *, integers: bool, weights: str) -> Release:
        """Values that are not negative and follow the order, in each group, or in margins that still add up."""
        if has_margins(release.manifest):
            if weights != "variance":
                raise InputError("The values of a breakdown are moved by their variances: leave out weights.")
            rounded = truth(integers, "integers")
            return consistent_breakdown(release, margins_of(release.manifest), integers=rounded)
        return made_consistent(release, integers, weights)

    def reader(self, release: Release) -> Reader:
        """Answers from the law of the noise."""
        from isotone.release.kinds.counts.reader import CountReader

        return BreakdownReader(release) if has_margins(release.manifest) else CountReader(release)

    def draws(self, manifest: Manifest) -> list[Manifest]:
        """The draws that a derived release came from."""
        if has_margins(manifest):
            assert isinstance(manifest, CountManifest)
            return [as_drawn(manifest, margins_of(manifest))]
        return draws_of(manifest)

    def rebuild(self, manifest: Manifest, described: Counts | None = None) -> Any:
        """The mechanism over the order of the manifest."""
        if has_margins(manifest):
            return margins_of(manifest, described)
        P = described.P if described else order_from(manifest["description"]["order"])
        return rebuild_count_mechanism(P, manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the noise guarantees for records of the kind that the rules let through."""
        if release.manifest.get("derived") and not has_margins(release.manifest):
            for draw in draws_of(release.manifest):
                self.derived_guarantee(Release({}, draw))  # each keeps its own guarantee
            return total_guarantee(release.manifest)
        manifest = release.manifest
        described = Counts.from_manifest(manifest, release.columns)
        result, stated = self.rebuild(manifest, described), guarantee_from(manifest.guarantee)
        mechanism = result.base if isinstance(result, MarginsMechanism) else result
        if described.is_breakdown != isinstance(result, MarginsMechanism):
            raise InputError("the mechanism is not one for what is described")
        if described.total != (release.total is not None):
            raise InputError("the number of records is not there, or is there and was not asked for")
        if described.total and not getattr(mechanism, "has_total", False):
            raise InputError(f"the noise of {type(mechanism).__name__} does not cover the number of records")
        _require_described(described, result, manifest)
        require_unit(described, stated)
        guarantee = replace(result.guarantee, unit=stated.unit)
        if isinstance(result, MarginsMechanism):
            return guarantee.for_neighbours(stated.neighbours)
        number = len(described.group_names or ())
        if isinstance(mechanism, HasGroups):
            if mechanism.groups != number:
                raise InputError(
                    f"the noise is for {mechanism.groups} groups, and {number or 'none'} are released"
                )
            return guarantee
        if number and guarantee.adjacency.units > 1:
            # one unit may leave a group and another enter a second one, which noise for replacing does not cover
            raise InputError("the noise is for replacing within a group, and a unit may change groups")
        return guarantee.for_neighbours(stated.neighbours) if number else guarantee

    recomputed = "elements, standard deviations and intervals are the mechanism's own"

    def looked_at(self, release: Release) -> str:
        """What was recomputed, and that slow draws were found again, not searched for."""
        if has_margins(release.manifest):
            return "all values, errors and intervals follow from the noisy integers and the mechanism"
        if not _begins(release):
            return self.recomputed
        return (
            f"{self.recomputed}, by draws that begin where the manifest says; a random walk keeps within the "
            "intervals as often as stated, and --full searches for the draws again"
        )

    def without_shortcuts(self, release: Release) -> Release:
        """The same release, whose law is drawn without being told where its draws begin."""
        if not _begins(release):
            return release
        mechanism = dict(release.manifest.mechanism)
        rest = {key: value for key, value in mechanism["relaxation"].items() if key != "draws"}
        return replace(
            release, manifest=replace(release.manifest, mechanism={**mechanism, "relaxation": rest})
        )

    def faults(self, release: Release) -> list[str]:
        """Labels, errors and intervals that are not those of the mechanism."""

        described = Counts.from_manifest(release.manifest, release.columns)
        if described.in_manifest() != release.manifest.description:
            return ["the description is not written as a release writes it"]
        if described.is_breakdown != has_margins(release.manifest):
            return ["the columns are not those of what is described"]
        if described.is_breakdown:
            return breakdown_faults(release, margins_of(release.manifest, described))
        if release.manifest.get("derived"):
            return derived_faults(release)
        return count_faults(release.columns, release.manifest, self.rebuild(release.manifest, described))


def _require_described(described: Counts, rebuilt: Any, manifest: Manifest) -> None:
    """Refuse a mechanism that is not written as a release writes it, or not the one that the description asks for."""
    breakdown = isinstance(rebuilt, MarginsMechanism)
    mechanism, setting = rebuilt.base if breakdown else rebuilt, described.setting
    if (margins_recipe(rebuilt) if breakdown else recipe_of(rebuilt)) != manifest.mechanism:
        raise InputError("the mechanism is not written as a release writes it")
    sizes = None, setting.max_size  # a mechanism without a bound covers records of every size
    if mechanism.contributions != setting.contributions or mechanism.max_size not in sizes:
        raise InputError("the mechanism is for records of another kind than those that were counted")
    if breakdown and list(rebuilt.importance) != described.importances:
        raise InputError("the importance of margins is not that of the description")
    method, recipe = described.method, manifest.mechanism
    if not isinstance(method, str):
        if recipe_of(method) != recipe_of(mechanism):
            raise InputError("the mechanism is not the one that was given")
        return
    if method not in ("best", type(mechanism).__name__):
        raise InputError("the mechanism is not the one that the description names")
    if {name: recipe[name] for name in ("records", "catch_all") if name in recipe} != (setting.fixed or {}):
        raise InputError("the root is not fixed as the description says")
    if "care" in recipe and getattr(mechanism, "care", None) != setting.cared:
        raise InputError("the mechanism cares for other errors than the description")


def _begins(release: Release) -> bool:
    """Whether the manifest says where the draws of a law begin."""
    relaxation = release.manifest.mechanism.get("relaxation")
    return isinstance(relaxation, dict) and bool(relaxation.get("draws"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


KIND = CountsKind()


# Recomputes errors and intervals of counts from the mechanism that a manifest describes.
#
# Each function returns what is wrong, a phrase each; nothing if all is as the mechanism says. Intervals come from a public
# stream and are compared exactly. Errors that were simulated are compared within eight of their own standard errors, so that another version of the random numbers would pass (false
# alarm below 1e-7 for each element), and one tenth more or less would not.

WALKED = 4_000
"""Rows of a random walk that show whether noise stays within intervals."""


def count_faults(columns: Columns, manifest: Manifest, mechanism: AdditiveMechanism) -> list[str]:
    """Faults in the labels, errors and intervals of counts."""
    groups = groups_of(manifest)
    names = [str(name) for name in mechanism.P.elements]
    repeat = len(groups) if groups else 1
    expected = {"element", "value", "sd", "low", "high", "low_all", "high_all"}
    if set(columns) != (expected | {"group"} if groups else expected):
        return ["the columns are not those of a release of counts"]
    if list(columns["element"]) != names * repeat:
        return ["the elements are not those of the order, in its sequence"]
    if groups and list(columns["group"]) != [value for value in groups for _ in names]:
        return ["the groups are not those that the manifest lists"]
    level = float(manifest["description"]["confidence"])
    if not 0 < level < 1:
        return ["the confidence of the intervals is not between 0 and 1"]
    if manifest.get("consistent"):
        return ["the manifest does not say what was made consistent"]
    faults = _value_faults(columns) + wave_faults(manifest)
    possible = getattr(mechanism, "possible_outputs", None)
    if possible is not None and not faults:
        rows = np.array(columns["value"], dtype=np.float64).reshape(repeat, -1)
        if not np.array_equal(possible(rows), rows):
            faults.append("the values do not add up")
    error = mechanism.error()
    sd = np.tile(error.sd, repeat)
    spread = np.tile(_spread(error.sd, error.standard_error), repeat)
    if not agrees(columns["sd"], sd, "error", error=spread):
        faults.append("the standard deviations are not the mechanism's")
    if "total" in manifest or "total_sd" in manifest:
        faults += _total_faults(manifest, mechanism, repeat, bool(groups))
    if manifest.get("law") != law_entry(mechanism, level):
        faults.append("the law of the noise is not described as this version draws it")
    widths = count_columns(mechanism, level)
    values = np.array(columns["value"], dtype=np.int64).reshape(repeat, -1)
    intervals = original_columns(mechanism.P, groups, values, widths)
    if any(tuple(columns[name]) != intervals[name] for name in ("low", "high", "low_all", "high_all")):
        faults.append("the intervals are not the mechanism's")
    elif isinstance(mechanism, PosetMechanism) and not _keeps_within(mechanism, widths, level):
        faults.append("the noise leaves the intervals more often than stated")
    return faults


def _keeps_within(mechanism: PosetMechanism, widths: Mapping[str, NDArray[Any]], level: float) -> bool:
    """Whether noise stays within intervals whose draws the manifest told, by a simulation that needs none of them."""
    relaxation = mechanism.sampler.relaxation
    if relaxation is None or not relaxation.draws:
        return True
    rows = np.abs(np.asarray(mechanism.simulate(WALKED, public_stream("isotone check 1")), dtype=np.float64))
    slack = (
        1.5 if mechanism.P.choices else 0.5
    )  # from rounding, of both running totals where there are choices
    wide = np.append(widths["alone"], widths["together"][:1]) + slack
    outside = np.concatenate((rows, rows.max(axis=1, keepdims=True)), axis=1) > wide
    share = mean_of_rows(outside.astype(np.float64))
    return bool(np.all(share.variance <= 1 - level + TOLERANCES["error"].errors * share.standard_error))


def derived_faults(release: Release) -> list[str]:
    """Faults in what was derived. It is computed again from the releases that it was derived from."""
    manifest = release.manifest
    assert isinstance(manifest, CountManifest)
    for origin, values in origins(manifest):
        again = _restored(origin, values)
        if again.manifest.content_hash != origin.content_hash:
            return ["a release that this one was derived from was changed"]
        if not origin.derived:
            faults = count_faults(again.columns, origin, mechanism_of(origin))
        else:
            faults = derived_faults(again)
        if faults:
            return faults
    again = _rederived(manifest)
    stated, result = (replace(one, content_hash=None, files=None) for one in (manifest, again.manifest))
    if stated != result or set(again.columns) != set(release.columns):
        return ["the manifest is not that of what was derived"]
    same = _same_columns(again.columns, release.columns)
    return [] if same else ["the values are not those that were derived"]


def _restored(manifest: CountManifest, values: Sequence[Any]) -> Release:
    """A release again, from its manifest and its values. The hash is that of what comes out."""
    if manifest.derived:
        again = _rederived(manifest)
        return Release(again.columns, replace(manifest, content_hash=again.manifest.content_hash))
    mechanism = mechanism_of(manifest)
    known = count_columns(mechanism, float(manifest["description"]["confidence"]))
    rows = np.array(values, dtype=np.int64).reshape(-1, len(mechanism.P))
    columns = original_columns(mechanism.P, groups_of(manifest), rows, known)
    return Release(columns, replace(manifest, content_hash=manifest.hash_with(columns)))


def _rederived(manifest: CountManifest) -> Release:
    """What a derived release should be, by the same steps and with the same refusals."""
    derived, parts = manifest.derived, [_restored(*origin) for origin in origins(manifest)]
    if not derived or not parts:
        raise InputError("the manifest does not say what was derived from what")
    how = derived["how"]
    if how == "combined" and len(parts) > 1:
        return combine_counts(parts, derived["follows_order"])
    if how == "given" and len(parts) == 1:
        groups, records = groups_of(manifest), derived["records"]
        stated = records if groups is None else dict(zip(groups, records, strict=True))
        return given(parts[0], stated, derived["after_rules"])
    if how == "consistent" and len(parts) == 1:
        return made_consistent(parts[0], derived["integers"], derived["weights"])
    raise InputError(f"the manifest derives counts in an unknown way, {str(how)[:40]!r}")


def _same_columns(first: Columns, second: Columns) -> bool:
    """Whether two releases agree, in whole numbers and names exactly, elsewhere up to the last digit published."""
    for name, column in first.items():
        other = second[name]
        if len(column) != len(other):
            return False
        for a, b in zip(column, other, strict=True):
            near = isinstance(a, float) and isinstance(b, float) and agrees(a, b, "derived value")
            if type(a) is not type(b) or not (a == b or near):
                return False
    return True


def _value_faults(columns: Columns) -> list[str]:
    whole = all(isinstance(x, int) for x in columns["value"])
    return [] if whole else ["the values are not whole numbers"]


def _spread(sd: Floats, standard_error: Floats) -> Floats:
    """The standard error of each standard deviation, given that of each variance."""
    if not standard_error.size:
        return np.zeros_like(sd)
    return np.divide(standard_error, 2 * sd, out=np.zeros_like(sd), where=sd > 0)


def _total_faults(
    manifest: Mapping[str, Any], mechanism: AdditiveMechanism, repeat: int, grouped: bool
) -> list[str]:
    total, stated = manifest.get("total"), manifest.get("total_sd")
    totals = total if isinstance(total, list) else [total]
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in totals)
    if not whole or len(totals) != repeat or isinstance(total, list) != grouped:
        return ["the numbers of records are not one for each group"]
    variance = getattr(mechanism, "total_variance", None)
    if variance is None:
        return ["the mechanism does not release the number of records"]
    known, error = math.sqrt(variance()), mechanism.error()
    # simulated like the errors of the elements, from the same draws: no better known than the worst of them
    relative = float(np.max(_spread(error.sd, error.standard_error) / np.maximum(error.sd, 1e-9)))
    near = stated is not None and agrees(float(stated), known, "error", error=relative * known)
    return [] if near else ["the standard deviation of the number of records is not the mechanism's"]


# What is published beside the noisy integers, computed again from them and the mechanism that a manifest describes.

_WORDS = {
    "raw": "the values as estimated do not follow from the noisy integers",
    "value": "the values are not the least-squares estimates of the noisy integers",
    "sd": "the standard deviations are not the mechanism's",
    "low": "the intervals are not the mechanism's",
    "high": "the intervals are not the mechanism's",
}


def breakdown_faults(release: Release, mechanism: MarginsMechanism) -> list[str]:
    """Faults in the labels, values, errors and intervals of a breakdown."""
    manifest = release.manifest
    assert isinstance(manifest, CountManifest)
    level = float(manifest["description"]["confidence"])
    if not 0 < level < 1:
        return ["the confidence of the intervals is not between 0 and 1"]
    if (manifest.total, manifest.total_sd) != (None, None):
        return ["a breakdown has no such entries"]
    tables = measured_tables(manifest, mechanism)
    expected = breakdown_columns(mechanism, mechanism.estimate(tables), known_errors(mechanism, level))
    if manifest.derived is not None or manifest.consistent is not None:
        integers = (manifest.derived or {}).get("integers")
        how = {"how": "consistent", "integers": integers}
        if manifest.derived != how or not isinstance(integers, bool) or not manifest.consistent:
            return ["the manifest does not say how the values were derived"]
        expected = consistent_columns(mechanism, tables, expected, integers)
    faults = wave_faults(manifest) + _share_faults(mechanism)
    if manifest.law != law_entry(mechanism, level):
        faults.append("the law of the noise is not described as this version draws it")
    return faults + _differences(release.columns, expected, list(mechanism.breakdown.columns))


def _share_faults(mechanism: MarginsMechanism) -> list[str]:
    """Whether the shares are as good for the importance stated as those that a search gives."""
    weights = np.array(mechanism.importance)
    rho = mechanism.guarantee.rho if mechanism.guarantee.kind != mechanism.base.guarantee.kind else None
    best = MarginsMechanism(mechanism.base, mechanism.breakdown, _pairs(mechanism), rho=rho)
    result, least = (float(weights @ one.mean_variances()) for one in (mechanism, best))
    return (
        []
        if agrees(result, least, "error of shares")
        else ["the budget is not shared by the importance stated"]
    )


def _pairs(mechanism: MarginsMechanism) -> list[tuple[Any, float]]:
    breakdown = mechanism.breakdown
    return list(zip(map(breakdown.names, breakdown.margins), mechanism.importance, strict=True))


def _differences(columns: Columns, expected: Columns, by: list[str]) -> list[str]:
    if list(columns) != list(expected):
        return ["the columns are not those of a breakdown"]
    for name in ("margin", *by, "element"):
        if columns[name] != expected[name]:
            return [f"the column {name!r} is not that of the margins and lists of the manifest"]
    result: dict[str, None] = {}
    for name, words in _WORDS.items():
        if name not in expected:
            continue
        if not agrees(columns[name], expected[name], "value of a breakdown"):
            result[words] = None
    return list(result)
