"""The pages in the order of their story: a line each."""

from __future__ import annotations

from nearfuture.lab.page import Page
from nearfuture.lab.pages import (
    concat_or_sum,
    front,
    quiz,
    row_convolution,
    the_race,
    who_looks_at_whom,
)

FRONT_PAGE = front.PAGE

PAGES: tuple[Page, ...] = (
    the_race.PAGE,
    who_looks_at_whom.PAGE,
    concat_or_sum.PAGE,
    row_convolution.PAGE,
    quiz.PAGE,
)
