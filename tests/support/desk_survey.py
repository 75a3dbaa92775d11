"""A small survey at the desk: its data, and the screens up to a release."""

from __future__ import annotations

OUTLINE = "hyp\n  twice\n  meds < chol\nchol\n"
PAGES = {
    "data": {
        "data.path": "answers.csv",
        "data.header": "yes",
        "data.unit": "person",
        "privacy.unit": "person",
        "data.contributions": "1",
        "privacy.neighbours": "add-remove",
    },
    "what": {"outline": OUTLINE, "data.yes": ""},
    "accuracy": {"amount": "1", "ask": "next"},
    "budget": {"ledger": "survey.ledger", "total": "3", "dataset": ""},
}

DICTIONARY = """field_name,field_type,field_label,select_choices_or_calculations,branching_logic
smoke,radio,Do you smoke?,"1, Yes | 2, No | 9, Refused",
daily,yesno,Every day?,,[smoke] = '1'
late,yesno,Late?,,"[daily] = '1' and datediff([a], [b], 'd') > 3"
"""


SURVEY = {
    "survey": [
        ["type", "name", "label", "relevant"],
        ["select_one yn", "smoke", "Do you smoke?"],
        ["select_one yn", "daily", "Do you smoke every day?", "${smoke} = '1'"],
        ["select_one when", "first", "When is the first one after waking up?", "${daily} = '1'"],
        ["select_one yn", "quit", "Did you try to quit?", "${smoke} = '1'"],
        ["select_multiple aid", "aids", "What helped?", "${quit} = '1'"],
    ],
    "choices": [
        ["list_name", "name", "label"],
        *(["yn", code, label] for code, label in ((1, "Yes"), (2, "No"), (7, "Refused"), (9, "Don't know"))),
        *(["when", code, label] for code, label in ((1, "Within 5 minutes"), (2, "Later"))),
        *(["aid", code, label] for code, label in (("patch", "A patch"), ("talk", "Talking to somebody"))),
    ],
}


def write_survey(folder, rows=600):
    """An XLSForm and a file of its coded answers."""
    from tests.support.workbooks import write_workbook

    write_workbook(folder / "form.xlsx", SURVEY)
    lines = ["person,smoke,daily,first,quit,aids"]
    kinds = ("1,1,1,1,patch talk", "2,,,,", "1,2,,1,talk", "7,,,,", "1,1,2,9,", "1,9,,2,")
    lines += [f"{i},{kinds[i % len(kinds)]}" for i in range(rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")


def write_answers(folder, rows=60):
    lines = ["person,hyp,twice,meds,chol"]
    lines += [f"{i},{'yes' if i % 2 else 'no'},no,no,{'yes' if i % 3 else 'no'}" for i in range(rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")


def draft(client, **more):
    """A whole spec, typed on the screens up to the review. Returns the address of the draft."""
    here = client.begin("order", **{"name": "survey", "title": "A survey", **more.get("begin", {})})
    for name, fields in PAGES.items():
        answer = client.post(f"{here}/{name}", **{**fields, **more.get(name, {})})
        assert answer.status == 303, answer.text
    return here


def saved(client, **more):
    here = draft(client, **more)
    answer = client.post(f"{here}/review")
    assert answer.status == 303, answer.text
    return here


def asked(client, here, **fields):
    """Send the form of the release."""
    page = client.get(f"{here}/release")
    return client.post(f"{here}/release", **{"request": page.field("request"), "confirm": "1.0", **fields})


def released(client, here, **fields):
    sent = asked(client, here, **fields)
    assert sent.status == 303, sent.text
    return client.finish(sent.headers["location"])
