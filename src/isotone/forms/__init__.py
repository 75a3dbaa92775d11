"""Questionnaires as they come, read into questions and the order that their conditions imply."""

from isotone.forms.questionnaire import Questionnaire
from isotone.forms.reading import read_form

__all__ = ["Questionnaire", "read_form"]
