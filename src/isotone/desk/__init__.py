"""The desk is a local web application for planning, releasing and looking after budgets.

Every number on its pages comes from the library; the pages have no mathematics of their own. ``isotone serve`` starts it,
and nothing else of isotone imports it. It needs the extra ``desk``.
"""
