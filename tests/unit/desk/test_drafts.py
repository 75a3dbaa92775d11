"""Nothing that was typed is lost: drafts are files, a refused form is shown again, and two tabs do not undo each other."""

from __future__ import annotations

import html

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import DICTIONARY, OUTLINE, PAGES, asked, draft, saved, write_answers

import isotone as iso


def test_no_page_is_the_answer_to_a_form(tmp_path):
    """Back shows every screen again: forms lead on, also where they are refused, and what was typed is still there."""
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    for path, fields in (
        ("/begin", {"kind": "order", "name": "a b"}),
        (f"{here}/data", {**PAGES["data"], "data.unit": "persn"}),
        (f"{here}/what", {"outline": "a\n  a"}),
        (f"{here}/accuracy", {"amount": "x"}),
        (f"{here}/budget", {"ledger": "../x"}),
    ):
        answer = client.send(path, {"csrf": client.keys.form, **fields})
        assert answer.status == 303
        page = client.get(answer.headers["location"])
        assert page.problems
        assert list(fields.values())[-1].splitlines()[0] in page.text
        assert client.get(answer.headers["location"]).text == page.text  # Back, and once more


def test_a_draft_is_found_again_after_a_new_start(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = client.begin("order", title="My survey")
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    assert client.post(f"{here}/what/keep", outline="hyp\n  twi").status == 200
    later = Client(tmp_path).open()  # the first desk may have been killed
    assert "survey.draft.toml" in later.get("/").text
    page = later.get(f"{here}/what").text
    assert "hyp\n  twi</textarea>" in page
    assert "did not send it" in page
    opened = later.post("/begin", open="survey.draft.toml").headers["location"]
    assert opened.rpartition("/")[0] == here
    assert later.post(f"{here}/what", **PAGES["what"]).status == 303
    for name in ("accuracy", "budget"):
        assert later.post(f"{here}/{name}", **PAGES[name]).status == 303
    assert "My survey" in later.get(f"{here}/review").text
    assert later.post(f"{here}/review").status == 303
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "survey.toml"]


def test_a_draft_may_be_thrown_away_and_nothing_else(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = client.begin("order")
    for name in ("answers.csv", "../x.draft.toml", "survey.toml"):
        assert client.post("/begin", discard=name).status == 422
    assert client.post("/begin", discard="survey.draft.toml").status == 303
    assert client.get(f"{here}/data").status == 404
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


@pytest.mark.parametrize(
    "text",
    [
        "id = 1",
        'id = "../../x"',
        'id = "<script>"',
        'id = "aaaaaaaaaa"\nguesses = 3',
        "x = 1979-05-27",
        "[desk.typed]\nwhat = 1",
    ],
)
def test_a_draft_that_no_desk_wrote_is_refused(tmp_path, text):
    client = Client(tmp_path).open()
    client.begin("order")
    (tmp_path / "odd.draft.toml").write_text(f"[desk]\n{text}\n")
    assert client.post("/begin", open="odd.draft.toml").status == 422
    assert client.get("/").status == client.get("/draft/aaaaaaaaaa/what").status - 204 == 200


def test_a_copy_of_a_draft_is_another_draft(tmp_path):
    client = Client(tmp_path).open()
    here = client.begin("order")
    (tmp_path / "copy.draft.toml").write_text((tmp_path / "survey.draft.toml").read_text())
    there = client.post("/begin", open="copy.draft.toml").headers["location"].rpartition("/")[0]
    assert there != here
    assert "Steps of survey.toml" in client.get(f"{here}/data").text
    assert "Steps of copy.toml" in client.get(f"{there}/data").text


def test_the_title_survives_an_import(tmp_path):
    (tmp_path / "dictionary.csv").write_text(DICTIONARY)
    client = Client(tmp_path).open()
    client.begin("order", "smoking", title="Smoking in 2026", form="dictionary.csv")
    (kept,) = client.desk.drafts.values()
    assert kept.section("output")["title"] == "Smoking in 2026"


def test_two_tabs_do_not_undo_each_other(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    mark = client.get(f"{here}/what").field("mark")
    assert client.post(f"{here}/what", outline="hyp\n", mark=mark).status == 303  # the other tab
    late = client.post(f"{here}/what", outline=OUTLINE, mark=mark)
    assert "was changed since you opened it" in late.problems
    assert "meds &lt; chol" in late.text
    (kept,) = client.desk.drafts.values()
    assert kept.section("order")["elements"] == ["hyp"]
    assert client.post(f"{here}/what", outline=OUTLINE, mark=late.field("mark")).status == 303
    assert kept.section("order")["elements"] == ["hyp", "twice", "meds", "chol"]
    # other pages of the same draft are no conflict
    mark = client.get(f"{here}/data").field("mark")
    assert client.post(f"{here}/accuracy", amount="0.5", ask="next").status == 303
    assert client.post(f"{here}/data", **PAGES["data"], mark=mark).status == 303


def test_pieces_of_pages_are_escaped_once(tmp_path):
    """A problem and a diagram at once, while one types."""
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    look = client.post(f"{draft(client)}/what/look", outline="hyp\n  <b>\nchol < none\n").text
    assert "<li>" in look
    assert "&amp;" not in look
    assert "&lt;li" not in look


def test_the_words_below_a_diagram_follow_its_direction():
    from isotone.desk.figures import order_picture
    from isotone.order import Poset

    low = order_picture(Poset.chain(["c", "b", "a"]), {})
    wide = order_picture(Poset.chain([f"a long name of an answer {i}" for i in range(3)]), {})
    flat = order_picture(
        Poset(
            [f"a rather long name {i}" for i in range(40)],
            [(f"a rather long name {i}", "a rather long name 0") for i in range(1, 40)],
        ),
        {},
    )
    for picture in (low, wide, flat):
        assert ("above it" in picture) != ("to its left" in picture)


def test_back_shows_what_was_typed_last_and_no_problem_that_is_mended(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = client.begin("order")
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    refused = client.send(f"{here}/what", {"csrf": client.keys.form, "outline": "a\n  a"}).headers["location"]
    assert client.post(f"{here}/what/keep", outline="hyp\n  twi").status == 200
    page = client.get(refused)
    assert page.problems
    assert "hyp\n  twi</textarea>" in page.text
    assert client.post(f"{here}/what", **PAGES["what"]).status == 303
    page = client.get(refused)
    assert not page.problems
    assert "a\n  a</textarea>" not in page.text


def test_a_total_that_cannot_pay_this_release_is_refused(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    page = client.post(f"{here}/budget", **{**PAGES["budget"], "total": "0.001"})
    assert "This release alone spends 1, which is more than a total of 0.001." in page.problems


def test_a_header_that_is_cut_at_the_wrong_separator_is_told(tmp_path):
    write_answers(tmp_path)
    (tmp_path / "answers.csv").write_text("person;hyp\n1;1\n")
    client = Client(tmp_path).open()
    here = client.begin("order")
    words = "If ';' stands between names, say so under 'How the file is written'."
    assert words in html.unescape(client.post(f"{here}/data/look", **PAGES["data"]).text)
    assert words in html.unescape(client.post(f"{here}/data", **PAGES["data"]).problems)


def test_a_second_draft_pays_from_the_ledger_that_is_there(tmp_path):
    """Releases from the same people share a ledger. One for other people is made where the steward says that they are others."""
    write_answers(tmp_path)
    iso.Ledger(tmp_path / "people.ledger", epsilon=1, unit="person").create()
    client = Client(tmp_path).open()
    here = client.begin("order")
    for name in ("data", "what", "accuracy"):
        assert client.post(f"{here}/{name}", **PAGES[name]).status == 303
    assert 'value="people.ledger"' in client.get(f"{here}/budget").text
    refused = client.post(f"{here}/budget", ledger="other.ledger", dataset="", total="2")
    assert "There is a ledger already: people.ledger." in html.unescape(refused.problems)
    assert not (tmp_path / "other.ledger").exists()
    assert (
        client.post(f"{here}/budget", ledger="other.ledger", dataset="", total="2", second="yes").status
        == 303
    )
    made = iso.Ledger(tmp_path / "other.ledger")
    assert (made.total.epsilon, list(made.charges())) == (2, [])


def test_what_to_expect_of_a_distribution_is_a_table(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = client.begin("distribution")
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    what = {"distribution.column": "hyp", "distribution.bounds": "0, 90"}
    assert client.post(f"{here}/what", **what).status == 303
    page = client.get(f"{here}/accuracy").text
    assert "add-remove one person, about 10,000 records." in page
    assert "guess=" not in page
    assert '<th scope="col">band</th>' in page
    shown = client.post(f"{here}/accuracy/look", amount="1", ask="error", records="300").text
    assert "about 300 records" in shown


def test_a_ledger_of_other_people_is_refused_where_it_is_typed(tmp_path):
    write_answers(tmp_path)
    iso.Ledger(tmp_path / "survey.ledger", epsilon=1, unit="household").create()
    client = Client(tmp_path).open()
    here = client.begin("order")
    for name in ("data", "what", "accuracy"):
        assert client.post(f"{here}/{name}", **PAGES[name]).status == 303
    page = client.post(f"{here}/budget", ledger="survey.ledger", dataset="")
    assert "protects one household; this release protects one person" in html.unescape(page.problems)
    assert "Who is protected is named on the screen Data." in page.problems


def test_what_is_typed_wrong_is_called_as_on_the_page(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = client.begin("distribution")
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    for bounds, words in (("0", "this is not complete (it is '0')"), ("0, x", "not 'x'")):
        page = client.post(f"{here}/what", **{"distribution.column": "hyp", "distribution.bounds": bounds})
        said = html.unescape(page.problems)
        assert "Lowest and highest value: " in said
        assert f"{words}. Typed as 0, 100000." in said
        assert "distribution." not in said


@pytest.mark.parametrize(
    ("page", "typed", "why"),
    [
        ("data", {"data.path": "empty.csv"}, "empty.csv is empty"),
        ("data", {"data.path": "notes.docx"}, "its name ends in none of .csv"),
        ("budget", {"ledger": "books/survey.ledger"}, "no folder books for this ledger"),
    ],
)
def test_what_a_release_would_refuse_is_refused_where_it_is_typed(tmp_path, page, typed, why):
    write_answers(tmp_path)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "notes.docx").write_bytes(b"PK")
    client = Client(tmp_path).open()
    here = draft(client)
    assert why in client.post(f"{here}/{page}", **{**PAGES[page], **typed}).problems


def test_data_that_is_gone_is_named_and_nothing_is_charged(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = saved(client)
    (tmp_path / "answers.csv").unlink()
    assert (
        "answers.csv is not there any more. Nothing was charged" in asked(client, here, confirm="1").problems
    )
    assert not (tmp_path / "survey.ledger").exists()


def test_names_in_another_encoding_ask_for_it(tmp_path):
    (tmp_path / "answers.csv").write_bytes("person,Größe\n1,2\n".encode("latin-1"))
    client = Client(tmp_path).open()
    here = client.begin("order")
    said = "which encoding it has"
    assert said in client.post(f"{here}/data/look", **PAGES["data"]).text
    stated = {**PAGES["data"], "data.encoding": "latin-1"}
    assert said not in client.post(f"{here}/data/look", **stated).text
    assert client.post(f"{here}/data", **PAGES["data"]).status == 303
    assert said in client.post(f"{here}/what", outline="Größe\n").problems


def test_a_folder_of_other_files_is_refused_where_it_is_typed(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    assert "holds other files (mine.txt)" in client.post(f"{here}/review", title="", folder="full").problems
    (tmp_path / "note").write_text("")
    assert "is a file" in client.post(f"{here}/review", title="", folder="note").problems
    assert client.post(f"{here}/review", title="", folder="new").status == 303
