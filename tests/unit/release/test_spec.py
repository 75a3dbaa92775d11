"""Specs: what they say, and errors that name the entry, the value and the repair."""

from fractions import Fraction

import pytest

import isotone as iso
from isotone.errors import IsotoneError, OrderError, SpecError
from isotone.planning import Plan
from isotone.release import load_order, load_spec
from isotone.release.order_files import read_categories, read_order
from isotone.release.whatif import side_by_side

GOOD = """
[data]
path = "adults.csv"
unit = "person"
[privacy]
epsilon = "0.5"
ledger = "survey.ledger"
[order]
elements = ["hyp", "twice", "meds"]
relations = [["twice", "hyp"], ["meds", "hyp"]]
[output]
folder = "out"
"""


def spec(tmp_path, text):
    path = tmp_path / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return load_spec(path)


def test_a_good_spec_is_read(tmp_path):
    good = spec(tmp_path, GOOD)
    P = good.poset
    assert P.covers == (("twice", "hyp"), ("meds", "hyp"))
    assert good.unit == "person"
    assert good.guarantee.epsilon * 2 == 1
    assert good.resolve("adults.csv") == tmp_path / "adults.csv"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("epsilon", "epsillon"), r"privacy.epsillon: there is no such entry; did you mean 'epsilon'"),
        (("[data]", "[dta]"), r"dta: there is no such entry; did you mean 'data'"),
        (('"0.5"', '"one"'), r"privacy.epsilon: epsilon must be a finite number .*, not 'one'"),
        (('"0.5"', "-1"), r"privacy.epsilon: epsilon must be above 0"),
        (('"0.5"', "true"), r"privacy.epsilon"),
        (('path = "adults.csv"', ""), r"data: give path, or connection with table"),
        (("path =", 'connection = "sqlite://a.db"\npath ='), r"data: give path, or connection with table"),
        (('path = "adults.csv"', 'connection = "sqlite://a.db"'), r"connection and table go together"),
        (('path = "adults.csv"', 'connection = "mysql://a"\ntable = "t"'), r"one of postgresql://"),
        (('path = "adults.csv"', 'connection = "sqlite://a.db"\ntable = "a..b"'), r"table is the name"),
        (('folder = "out"', "folder = 3"), r"output.folder"),
        (("[order]", '[order]\nfile = "x.csv"'), r"in one way"),
        (
            ("[output]", '[table]\ncategory = "c"\nupper = 3\ncategories = ["a"]\n[output]'),
            r"exactly one of .*it has \[order\] and \[table\]",
        ),
        (('ledger = "survey.ledger"', ""), r"privacy.ledger: this entry is missing. The ledger that pays"),
        (
            ("[output]", '[survival]\ntime = "t"\neven = "e"\n[output]'),
            r"survival.horizon: this entry is missing. The public end of the curve",
        ),
        (('unit = "person"', 'unit = "person"\nweights = "w"'), r"survey weights are refused"),
        (('unit = "person"', 'unit = "person"\nby = "region"'), r"data.by: there is no such entry"),
        (('unit = "person"', 'unit = "person"\ncontributions = 0'), r"data.contributions"),
        (
            ('unit = "person"', 'unit = "person"\ntypes = { hyp = "date" }'),
            r"data.types.hyp.*'text', 'number' or 'integer'",
        ),
        (
            ('ledger = "survey.ledger"', 'ledger = "survey.ledger"\nbudget = 1'),
            r"privacy.budget: this is a table, such as budget = \{",
        ),
        (('unit = "person"', 'unit = "person"\nheader = "yes"'), r"data.header: true or false stands here"),
        (('epsilon = "0.5"', ""), r'give epsilon .*such as epsilon = "0.5", or rho'),
        (('epsilon = "0.5"', 'epsilon = "1"\nrho = "1"'), r"not both"),
    ],
)
def test_a_bad_entry_is_named_with_its_value_and_the_repair(tmp_path, change, message):
    with pytest.raises(SpecError, match=message):
        spec(tmp_path, GOOD.replace(*change))


def test_a_file_that_is_no_toml_or_not_there_is_explained(tmp_path):
    with pytest.raises(SpecError, match="not valid TOML"):
        spec(tmp_path, "[data\n")
    with pytest.raises(SpecError, match=r"There is no spec .*; did you mean 'spec.toml'"):
        load_spec(tmp_path / "spec.tml")
    (tmp_path / "answers.csv").write_text("person,ill\nMaria,1\n")
    with pytest.raises(
        SpecError, match=r"answers.csv' is no spec: that is a TOML file, with a name that ends in .toml.$"
    ):
        load_spec(tmp_path / "answers.csv")  # and nothing in it is shown
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="from the path of a TOML file, not from a dict"):
        load_spec({"data": {}})  # pyright: ignore[reportArgumentType]
    with pytest.raises(SpecError, match="is not UTF-8"):
        load_spec(tmp_path / "binary.toml")


def test_a_cycle_in_the_order_is_printed_in_names(tmp_path):
    bad = spec(tmp_path, GOOD.replace('["meds", "hyp"]', '["hyp", "twice"]'))
    with pytest.raises(OrderError, match=r"hyp.*twice|twice.*hyp"):
        bad.poset


def test_the_hash_depends_on_what_is_said_and_not_on_how_it_is_laid_out(tmp_path):
    first = spec(tmp_path, GOOD).hash
    assert spec(tmp_path, "# a comment\n" + GOOD.replace("\n[", "\n\n[")).hash == first
    assert spec(tmp_path, GOOD.replace("0.5", "0.6")).hash != first
    assert spec(tmp_path, GOOD.replace('unit = "person"', "")).hash != first


def test_the_hash_covers_the_public_files_a_spec_names(tmp_path):
    by_file = GOOD.replace(
        'elements = ["hyp", "twice", "meds"]\nrelations = [["twice", "hyp"], ["meds", "hyp"]]',
        'file = "order.csv"',
    )
    (tmp_path / "order.csv").write_text("child,parent\ntwice,hyp\n")
    first = spec(tmp_path, by_file).hash
    (tmp_path / "order.csv").write_text("child,parent\ntwice,hyp\nmeds,hyp\n")
    assert spec(tmp_path, by_file).hash != first


def test_an_order_is_read_from_csv_json_toml_and_from_a_spec(tmp_path):
    (tmp_path / "order.csv").write_text("child,parent\ntwice,hyp\nmeds,hyp\nalone,\n")
    (tmp_path / "order.json").write_text('{"twice": "hyp", "meds": ["hyp"], "alone": null}')
    (tmp_path / "order.toml").write_text('twice = "hyp"\nmeds = ["hyp"]\nalone = []\n')
    orders = [read_order(tmp_path / f"order.{ending}") for ending in ("csv", "json", "toml")]
    assert orders[0] == orders[1] == orders[2]
    assert len(orders[0]) == 4
    (tmp_path / "spec.toml").write_text(GOOD)
    assert len(load_order(tmp_path / "spec.toml")) == 3
    assert load_order(tmp_path / "order.csv") == orders[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "chld,parent\n", "no column 'child'"),
        (
            "a.csv",
            "a,b\nx,y\n",
            r"has no column 'child'\. Its columns are 'a', 'b'\. .*--lower NAME --upper NAME",
        ),
        ("a.csv", "", "is empty"),
        ("a.csv", "child,parent\n", "names no element"),
        ("a.json", "[1, 2]", "must hold a table"),
        ("a.json", "{", "cannot be read"),
        ("a.toml", "x = ", "cannot be read"),
        ("a.xml", "<a/>", "ends in .csv, .json or .toml"),
    ],
)
def test_an_order_file_that_cannot_be_used_is_explained(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(IsotoneError, match=message):
        read_order(tmp_path / name)


def test_a_missing_order_file_is_named(tmp_path):
    for name in ("none.csv", "none.json"):
        with pytest.raises(SpecError, match=f"There is no file .*{name}"):
            read_order(tmp_path / name)


def test_categories_come_in_the_order_of_the_file(tmp_path):
    (tmp_path / "c.csv").write_text("county\nz\na\nz\n\n")
    assert read_categories(tmp_path / "c.csv", "county") == ("z", "a")


CURVE = """
[data]
path = "scores.csv"
[privacy]
epsilon = "1"
ledger = "study.ledger"
[curve]
x = "score"
y = "label"
bounds = [0, 1]
y_range = [0, 1]
{more}
[output]
folder = "out"
"""


def curve_spec(tmp_path, more="", privacy='epsilon = "1"'):
    path = tmp_path / "curve.toml"
    path.write_text(CURVE.format(more=more).replace('epsilon = "1"', privacy))
    return load_spec(path)


def test_a_curve_may_have_a_list_of_points_and_steps_of_values(tmp_path):
    curve = curve_spec(tmp_path, 'x_grid = [0, 0.25, 1]\nmethod = ["baseline", 16]').description
    assert curve == iso.Curve(
        "score",
        y="label",
        bounds=(0, 1),
        y_range=(0, 1),
        x_grid=[0, Fraction(1, 4), 1],  # pyright: ignore
        method=("baseline", 16),
        unit=curve.privacy_unit,
    )
    assert curve.mechanism(curve.guarantee(1)).settings["method"].value_levels == 16
    assert "baseline method" in str(curve_spec(tmp_path, 'method = "baseline"').plan())


@pytest.mark.parametrize("grid", ["[0, 'a']", "0.5", "true", "'letters'"])
def test_a_grid_that_is_none_is_named_without_the_types_that_were_tried(tmp_path, grid):
    with pytest.raises(SpecError, match=r"curve\.x_grid") as caught:
        curve_spec(tmp_path, f"x_grid = {grid}")
    assert "constrained" not in str(caught.value)


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        ('rho = "2"', "implies this one has ε = 2; with zCDP choices have twice that, 4"),
        ('epsilon = "1"\ndelta = "1e-6"', "would have ε = 0.441 in place of 1"),
    ],
)
def test_a_plan_of_a_curve_says_what_would_be_guaranteed(tmp_path, privacy, words):
    assert words in str(curve_spec(tmp_path, privacy=privacy).plan())


def test_the_plan_of_a_curve_is_a_plan_like_others(tmp_path):
    spec = curve_spec(tmp_path)
    made = spec.plan(records=50)
    assert isinstance(made.view, Plan)
    assert str(made).endswith(str(made.view))
    (row,) = side_by_side([("as it is", spec)], records=50)
    assert row["mechanism"] == made.view.rows[0].name
    assert spec.plan().view is None
    with pytest.raises(SpecError, match="how many records"):
        side_by_side([("as it is", spec)])


def test_the_plan_of_a_shape_does_not_pass_other_methods_off_as_its_own(tmp_path):
    text = str(curve_spec(tmp_path, 'shape = ["constant", 4]').plan(records=50))
    assert "a curve fitted to noisy sums, of shape constant(4)" in text
    sloped = str(curve_spec(tmp_path, 'shape = ["lipschitz", "0.5"]').plan(records=50))
    assert "a curve fitted to noisy sums, of shape lipschitz(0.5)" in sloped
    drawn = curve_spec(tmp_path, 'shape = ["constant", 4]\nloss = "absolute"').plan()
    assert "one draw from all curves of shape constant(4)" in str(drawn)
    assert "for curves without the shape" in text
    tree = str(curve_spec(tmp_path, 'shape = "convex"\nmethod = "threshold"\nloss = ["pinball", 0.9]').plan())
    assert "the published tree of shape convex, pinball(0.9) loss" in tree


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('shape = "convex"\nx_grid = 3000', "is the limit"),
        ('method = "magic"', "method must be .* not 'magic'"),
        ('loss = "cubic"', "no loss 'cubic'"),
        ('loss = ["pinball", 2]', "strictly between 0 and 1"),
        ('shape = ["constant", 0]', "whole number from 1 to 64"),
        ("x_grid = [0, 1, 0.5]", "0.5 comes after 1"),
        ('method = ["auto", 17]', "power of two"),
    ],
)
def test_the_plan_of_a_curve_refuses_what_its_release_would_refuse(tmp_path, more, message):
    with pytest.raises(IsotoneError, match=message):
        curve_spec(tmp_path, more).plan()


@pytest.mark.parametrize(
    ("contributions", "rows", "share", "words"),
    [
        (1, 3, 1.0, "combined into one record"),
        (2, 3, 2 / 3, "about 67 % of all rows"),
        (3, 3, 1.0, "none is left out"),
        (3, 1, 1.0, "has 1 row, "),
    ],
)
def test_a_plan_says_what_bounding_costs_for_a_guessed_number_of_rows(
    tmp_path, contributions, rows, share, words
):
    given = GOOD.replace('unit = "person"', f'unit = "person"\ncontributions = {contributions}')
    plan = spec(tmp_path, given).plan(rows_per_unit=rows)
    assert plan.plain()["share_of_rows"] == share
    assert words in str(plan)
    assert "as you guess" not in spec(tmp_path, given).plan().note


def test_a_curve_with_one_contribution_keeps_one_of_the_guessed_rows(tmp_path):
    plan = curve_spec(tmp_path, 'method = "additive"').plan(records=50, rows_per_unit=4)
    assert plan.plain()["share_of_rows"] == 0.25
    with pytest.raises(IsotoneError, match="rows_per_unit"):
        curve_spec(tmp_path, 'method = "additive"').plan(records=50, rows_per_unit=0)


@pytest.mark.parametrize(
    "written", ["child;parent\ntwice;hyp\nmeds;hyp\n", "Parent\tChild \nhyp\ttwice\nhyp\tmeds\n"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_order_file_may_be_written_in_any_way(tmp_path, written, encoding):
    (tmp_path / "order.csv").write_text(written, encoding=encoding)
    assert set(read_order(tmp_path / "order.csv").covers) == {("twice", "hyp"), ("meds", "hyp")}


def test_the_data_named_as_a_public_file_by_mistake_are_not_shown(tmp_path):
    """Without a header its first line is a person's record, and nothing was charged for it."""
    (tmp_path / "people.csv").write_text("Ann Miller,1,chil\nBob,0,x\n")
    order = 'elements = ["hyp", "twice", "meds"]\nrelations = [["twice", "hyp"], ["meds", "hyp"]]'
    for path in ("people.csv", "*.csv"):
        text = GOOD.replace(order, 'file = "people.csv"').replace("adults.csv", path)
        with pytest.raises(SpecError, match="is the data") as caught:
            spec(tmp_path, text).description
        assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "arrow", "hint"),
    [
        ("epsilon = 0,5", "line 6: epsilon = 0,5", "A decimal number has a point"),
        ("größe = 1", "line 6: größe = 1", 'stands in quotes: "name" = "text"'),
        ("my name = 1", "line 6: my name = 1", 'stands in quotes: "name" = "text"'),
        ("epsilon = half", "line 6: epsilon = half", "A text stands in quotes"),
        ('epsilon = "0.5', 'line 6: epsilon = "0.5', "^"),
        ("epsilon: 0.5", "line 6: epsilon: 0.5", "stands =, and no colon"),
        ("epsilon = \u201c0.5\u201d", "line 6: epsilon = \u201c0.5\u201d", "straight quotes"),
        (
            'epsilon = "C:\\Users\\me"',
            'line 6: epsilon = "C:\\Users\\me"',
            "in single quotes: 'C:\\data\\answers.csv'",
        ),
    ],
)
def test_an_error_of_toml_shows_the_line(tmp_path, wrong, arrow, hint):
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, GOOD.replace('epsilon = "0.5"', wrong))
    assert arrow in str(caught.value)
    assert hint in str(caught.value)


def test_a_spec_may_begin_with_the_mark_of_its_encoding(tmp_path):
    (tmp_path / "spec.toml").write_text(GOOD, encoding="utf-8-sig")
    assert load_spec(tmp_path / "spec.toml") == spec(tmp_path, GOOD)


def test_an_entry_of_another_section_is_sent_there(tmp_path):
    with pytest.raises(
        SpecError, match=r"output.unit: there is no such entry here, but in \[data\] and in \[privacy\]"
    ):
        spec(tmp_path, GOOD.replace("[output]", '[output]\nunit = "person"'))


def test_a_budget_that_guarantees_next_to_nothing_is_named_in_the_plan(tmp_path):
    said = [str(spec(tmp_path, GOOD.replace('"0.5"', f'"{e}"')).plan()) for e in ("10", "500")]
    assert ["guarantees next to nothing" in text for text in said] == [False, True]
    assert "by a factor of e^500" in said[1]


def test_a_plan_says_what_is_a_yes_where_the_spec_does_not(tmp_path):
    line = "A yes is written 1, true, t, yes or y, and anything else is a no"
    own = ('[data]\nyes = ["ja"]', '[data]\nelement = "item"', '[data]\nmissing = "yes"')
    specs = [GOOD, *(GOOD.replace("[data]", more) for more in own)]
    assert [line in str(spec(tmp_path, text).plan()) for text in specs] == [True, False, False, False]


def test_a_line_that_may_hold_a_password_is_not_shown(tmp_path):
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, GOOD.replace('path = "adults.csv"', "connection = postgresql://me:secret@host/a"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), (GOOD.replace('"0.5"', '"0,5"'), "has a point, not a comma")],
)
def test_a_spec_that_cannot_be_used_says_what_to_do(tmp_path, text, message):
    with pytest.raises(SpecError, match=message):
        spec(tmp_path, text)
    with pytest.raises(SpecError, match=r"is a folder.*spec\.toml"):
        load_spec(tmp_path)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            '[table]\ncategory = "c"\nupper = 5\ncategories = "list.csv"',
            r"square brackets.*a file goes into categories_file",
        ),
        ('[curve]\nx = "a"\ny = "b"\nbounds = "18-90"', r"square brackets, such as \[0, 1\]"),
    ],
)
def test_a_text_in_the_place_of_a_list_is_told_how_lists_are_written(tmp_path, entry, words):
    (tmp_path / "spec.toml").write_text(
        f'[data]\npath = "a.csv"\n[privacy]\nepsilon = "1"\nledger = "a.ledger"\n[output]\nfolder = "out"\n'
        f"{entry}\n"
    )
    with pytest.raises(SpecError, match=words):
        load_spec(tmp_path / "spec.toml")


def test_relations_in_columns_lower_and_upper_need_no_names(tmp_path):
    (tmp_path / "order.csv").write_text("Lower;Upper\ntwice;hyp\n")
    assert read_order(tmp_path / "order.csv").covers == (("twice", "hyp"),)
    (tmp_path / "bare.csv").write_text("twice,hyp\nmeds,hyp\n")
    with pytest.raises(SpecError, match="no header line: write child,parent above them"):
        read_order(tmp_path / "bare.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize(("ending", "text"), [("json", '{"Höhe": "Größe"}'), ("toml", '"Höhe" = "Größe"')])
def test_a_table_of_parents_may_be_written_in_any_encoding(tmp_path, ending, text, encoding):
    (tmp_path / f"order.{ending}").write_text(text, encoding=encoding)
    assert read_order(tmp_path / f"order.{ending}").covers == (("Höhe", "Größe"),)


def test_a_sheet_is_no_order_file(tmp_path):
    with pytest.raises(SpecError, match="Save the sheet as CSV"):
        read_order(tmp_path / "order.xlsx")
