"""A small survey at the desk: its data, and the screens up to a release."""

from __future__ import annotations

OUTLINE = "hyp\n  twice\n  meds < chol\nchol\n"
PAGES = {
    "what": {"outline": OUTLINE, "yes": ""},
    "people": {
        "path": "answers.csv",
        "unit": "person",
        "words": "person",
        "contributions": "1",
        "neighbours": "add-remove",
    },
    "accuracy": {"amount": "1", "ask": "next"},
    "budget": {"ledger": "survey.ledger", "total": "3", "dataset": ""},
}

DICTIONARY = """field_name,field_type,field_label,select_choices_or_calculations,branching_logic
smoke,radio,Do you smoke?,"1, Yes | 2, No | 9, Refused",
daily,yesno,Every day?,,[smoke] = '1'
late,yesno,Late?,,"[daily] = '1' and datediff([a], [b], 'd') > 3"
"""


def write_answers(folder, rows=60):
    lines = ["person,hyp,twice,meds,chol"]
    lines += [f"{i},{'yes' if i % 2 else 'no'},no,no,{'yes' if i % 3 else 'no'}" for i in range(rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")


def draft(client, **more):
    """A whole spec, typed on the screens up to the review. Returns the address of the draft."""
    begun = client.post("/begin", kind="order", name="survey", title="A survey")
    here = begun.headers["location"].rpartition("/")[0]
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
