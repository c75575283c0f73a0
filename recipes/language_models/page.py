"""What docs/language-models.md shows: tables, samples and the figure, for `recipes.report`."""

from __future__ import annotations

from collections.abc import Sequence

from recipes.language_models.experiment import Findings
from recipes.language_models.report import learning_table, samples_markdown, writing_table
from recipes.report import about, markdown


def page_parts(found: Sequence[Findings]) -> dict[str, str]:
    """The parts of the page by name: `en`, `ko`, `en samples`, `ko samples`, `provenance`."""
    parts: dict[str, str] = {}
    for each in found:
        language = each.text.language
        tables = (learning_table(each), writing_table(each))
        parts[language] = "\n\n".join(map(markdown, tables))
        parts[f"{language} samples"] = samples_markdown(each).strip()
    parts["provenance"] = _provenance(found)
    return parts


def _provenance(found: Sequence[Findings]) -> str:
    said = about()
    seconds = sum(outcome.trained.cpu_seconds for each in found for outcome in each.outcomes)
    return (
        f"`{said['command']}` at commit {said['commit']}, {said['processor']}, "
        f"{said['cores']} cores; training took {seconds:.0f} seconds of processor time."
    )
