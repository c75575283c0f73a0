"""The pages in the order of their story: a line each."""

from __future__ import annotations

from nearfuture.lab.page import Page
from nearfuture.lab.pages import (
    after_rnns,
    as_you_will_stream,
    concat_or_sum,
    evidence,
    front,
    padding,
    quiz,
    row_convolution,
    say_something,
    the_leak,
    the_price,
    the_race,
    unrolled,
    who_looks_at_whom,
)

FRONT_PAGE = front.PAGE

PAGES: tuple[Page, ...] = (
    unrolled.PAGE,
    the_race.PAGE,
    who_looks_at_whom.PAGE,
    evidence.PAGE,
    concat_or_sum.PAGE,
    the_leak.PAGE,
    row_convolution.PAGE,
    padding.PAGE,
    as_you_will_stream.PAGE,
    after_rnns.PAGE,
    the_price.PAGE,
    say_something.PAGE,
    quiz.PAGE,
)
