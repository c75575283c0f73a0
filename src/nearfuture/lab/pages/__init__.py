"""The pages in the order of their story: a line each."""

from __future__ import annotations

from nearfuture.lab.page import Page
from nearfuture.lab.pages import front, row_convolution, who_looks_at_whom

FRONT_PAGE = front.PAGE

PAGES: tuple[Page, ...] = (
    who_looks_at_whom.PAGE,
    row_convolution.PAGE,
)
