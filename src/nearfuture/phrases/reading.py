"""Template sentences of hassil, the format of Home Assistant, as nodes; checked on the way.

The syntax is hassil's, and its parser reads it: `(a|b)`, `[maybe]`, `(a;b)` in any order, `{list}`,
`{list:slot}`, `{0..100:slot}`, `<rule>`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nearfuture.error import MissingDependency, NearfutureError
from nearfuture.phrases.template import Characters, Choice, Node, Sequence, Slot, ValueList, spoken

if TYPE_CHECKING:
    from hassil import Expression, IntentData, Intents, ListReference, SlotList

_MOST_PERMUTED = 6
_MOST_NUMBERS = 100_000
_MOST_NODES = 300_000
_DEEPEST = 100


def import_hassil() -> Any:
    """Import the parser of template sentences, which the base install leaves out."""
    try:
        import hassil
    except ImportError as error:
        raise MissingDependency(
            "a file of phrases", "hassil", "pip install 'nearfuture[phrases]'"
        ) from error
    return hassil


@dataclass
class TemplateReader:
    """Turns the templates of a file into nodes.

    Args:
        intents: as hassil read them.

    Attributes:
        problems: what is wrong, a sentence each.
        omitted: names of lists of any text, such as the words of a message; what needs one is left
            out, for a grammar has only words that it knows.
    """

    intents: Intents
    problems: dict[str, None] = field(default_factory=dict)
    omitted: dict[str, None] = field(default_factory=dict)
    _nodes: int = 0
    _depth: int = 0
    _rules: dict[tuple[Any, ...], Node | None] = field(default_factory=dict)
    _lists: dict[tuple[Any, ...], ValueList | None] = field(default_factory=dict)

    def sentences(self, data: IntentData, where: str) -> list[Node]:
        """Return the templates of a block that can be spoken."""
        return [
            node
            for sentence in data.sentences
            if (
                node := self._node(
                    sentence.expression,
                    data,
                    (f"{where}: {sentence.text!r}",),
                )
            )
        ]

    def _node(self, expression: Expression, data: IntentData, path: tuple[str, ...]) -> Node | None:
        """Return the node of an expression; None where it cannot be spoken."""
        self._nodes += 1
        if self._nodes > _MOST_NODES or self._depth >= _DEEPEST:
            raise NearfutureError(
                f"the templates have more than {_MOST_NODES:,} parts when their rules are put in, "
                f"or more than {_DEEPEST} within each other: use fewer rules of rules",
                code="too_large",
            )
        self._depth += 1
        try:
            return self._put_in(expression, data, path)
        finally:
            self._depth -= 1

    def _put_in(
        self, expression: Expression, data: IntentData, path: tuple[str, ...]
    ) -> Node | None:
        hassil = import_hassil()
        match expression:
            case hassil.TextChunk():
                return Characters(spoken(expression.original_text))
            case hassil.Alternative():
                found = [self._node(item, data, path) for item in expression.items]
                return _choice([node for node in found if node is not None])
            case hassil.Permutation():
                return self._permutation(expression, data, path)
            case hassil.Group():
                return self._sequence(expression.items, data, path)
            case hassil.RuleReference():
                return self._rule(expression.rule_name, data, path)
            case hassil.ListReference():
                return self._slot(expression, data, path)
        raise AssertionError(expression)

    def _sequence(
        self, items: list[Expression], data: IntentData, path: tuple[str, ...]
    ) -> Node | None:
        nodes = [self._node(item, data, path) for item in items]
        if any(node is None for node in nodes):
            return None
        return Sequence(tuple(node for node in nodes if node is not None))

    def _permutation(self, group: Any, data: IntentData, path: tuple[str, ...]) -> Node | None:
        if len(group.items) > _MOST_PERMUTED:
            self._wrong(
                f"{len(group.items)} parts in any order; at most {_MOST_PERMUTED} can be", path
            )
            return None
        nodes = [self._node(item, data, path) for item in group.items]
        if any(node is None for node in nodes):
            return None
        parts = [node for node in nodes if node is not None]
        return _choice([Sequence(order) for order in itertools.permutations(parts)])

    def _rule(self, name: str, data: IntentData, path: tuple[str, ...]) -> Node | None:
        mention = f"<{name}>"
        if mention in path:
            self._wrong(f"the rule {mention} is part of itself, and would never end", path)
            return None
        rules = (
            data.expansion_rules if name in data.expansion_rules else self.intents.expansion_rules
        )
        if name not in rules:
            self._wrong(f"there is no rule {mention}", path)
            return None
        if data.expansion_rules or data.slot_lists:  # which its own parts may name
            return self._node(rules[name].expression, data, (*path, mention))
        key = (name, _domains(data))
        if key not in self._rules:
            self._rules[key] = self._node(rules[name].expression, data, (*path, mention))
        return self._rules[key]

    def _slot(
        self, reference: ListReference, data: IntentData, path: tuple[str, ...]
    ) -> Node | None:
        name = reference.list_name
        numbers = reference.get_inline_range()
        if numbers is not None:
            start, stop, step = numbers
            source: SlotList = import_hassil().RangeSlotList(name, start, stop, step)
        elif name in data.slot_lists:
            source = data.slot_lists[name]
        elif name in self.intents.slot_lists:
            source = self.intents.slot_lists[name]
        else:
            self._wrong(f"there is no list {{{name}}}", path)
            return None
        key = (id(source) if numbers is None else numbers, _domains(data))
        if key not in self._lists:
            self._lists[key] = self._list(name, source, data, path)
        found = self._lists[key]
        return None if found is None else Slot(reference.slot_name, found)

    def _list(
        self, name: str, source: SlotList, data: IntentData, path: tuple[str, ...]
    ) -> ValueList | None:
        hassil = import_hassil()
        if isinstance(source, hassil.WildcardSlotList):
            self.omitted[name] = None
            return None
        if isinstance(source, hassil.RangeSlotList):
            entries = self._numbers(name, source, path)
        else:
            assert isinstance(source, hassil.TextSlotList)
            entries = []
            for value in source.values:
                if not _fits(data, value.context):
                    continue
                node = self._node(value.text_in, data, (*path, f"{{{name}}}"))
                if node is not None:
                    entries.append((node, value.value_out))
            if not source.values:
                self._wrong(f"the list {{{name}}} has no values", path)
        if not entries:
            return None
        made = ValueList.of(name, entries)
        if not made.automaton.count:
            self._wrong(f"the list {{{name}}} has only empty values", path)
            return None
        return made

    def _numbers(self, name: str, source: Any, path: tuple[str, ...]) -> list[tuple[Node, Any]]:
        """Return the numbers of a range, in words where the language has them, else in digits."""
        numbers = list(itertools.islice(source.get_numbers(), _MOST_NUMBERS + 1))
        if len(numbers) > _MOST_NUMBERS:
            self._wrong(f"the range {{{name}}} has more than {_MOST_NUMBERS:,} numbers", path)
            return []
        engine = self._words(source)
        entries: list[tuple[Node, Any]] = []
        for number in numbers:
            texts = [f"{number:.15g}"] if engine is None else _in_words(engine, number)
            node = _choice([Characters(spoken(text)) for text in texts])
            assert node is not None
            entries.append((node, number * (source.multiplier or 1)))
        return entries

    def _words(self, source: Any) -> Any:
        if not source.words:
            return None
        from hassil.numbers import get_rbnf_engine

        try:
            return get_rbnf_engine(source.words_language or self.intents.language)
        except ValueError:  # a language whose numbers nobody has described
            return None

    def _wrong(self, what: str, path: tuple[str, ...]) -> None:
        self.problems[f"{path[0]}: {what}"] = None


def _choice(items: list[Node]) -> Node | None:
    return None if not items else items[0] if len(items) == 1 else Choice(tuple(items))


def _in_words(engine: Any, number: float) -> list[str]:
    return list(dict.fromkeys(engine.format_number(number).text_by_ruleset.values()))


def _domains(data: IntentData) -> tuple[str, ...]:
    """What decides which values of a list fit a block: what it requires of their context."""
    return (repr(data.requires_context), repr(data.excludes_context))


def _fits(data: IntentData, context: Mapping[str, Any] | None) -> bool:
    """Whether a value of a list, such as a device, is of the kind that a block speaks of."""
    if not context:
        return True
    hassil = import_hassil()
    values = dict(context)
    return bool(
        hassil.check_required_context(data.requires_context, values, allow_missing_keys=True)
        and hassil.check_excluded_context(data.excludes_context, values)
    )
