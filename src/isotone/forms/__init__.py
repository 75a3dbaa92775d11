"""Questionnaires as they come, read into questions and the order that their conditions imply."""

from isotone.forms.formats import read_form
from isotone.forms.questionnaire import Questionnaire

__all__ = ["Questionnaire", "read_form"]
