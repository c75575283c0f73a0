"""One spelling for transcripts, so that training texts and references compare as they sound."""

import unicodedata

# Typographic apostrophes, primes and accents that people type where an apostrophe is meant.
_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02b9\u2032\uff07\u0060\u00b4"
# Punctuation that stands between two words rather than inside or behind one.
_SEPARATORS = "/\\\u2026"
# Unicode calls these punctuation, but they are read aloud like the symbols.
_SPOKEN = "&%@#"
# Persian and the scripts of India spell with these two; every other format character is noise.
_JOINERS = "\u200c\u200d"


def normalise(text: str) -> str:
    r"""Return the text in the one spelling that vocabularies and error rates use.

    In this order:

    1. Unicode NFC, then lower case (`str.lower`).
    2. ``‘ ’ ‛ ʼ ʹ ′ ＇ ` ´`` become the apostrophe ``'``. One used as a quotation mark stays.
    3. Dashes and hyphens (Unicode Pd), underscores and other connectors (Pc), ``/``, ``\`` and
       ``…`` become a space; all other punctuation (P*) but the apostrophe goes without trace.
    4. Control and format characters (Cc, Cf: byte order mark, soft hyphen, directions) go without
       trace, except white space (tab, line ends, CR) and the two joiners U+200C and U+200D.
    5. Every run of white space becomes one space; none at the ends.
    6. NFC again, for what now stands together.

    Letters of every script (Hangul as syllables), combining marks, digits and symbols (``$ + =``)
    stay, and so do ``& % @ #``, which are spoken: write them and numbers as words before, since
    only you know how they were spoken. A vocabulary without them names them in its error.

    The result does not change when it is normalised again.

    >>> normalise("\ufeff Don’t stop—well, twenty-one!\r\n")
    "don't stop well twenty one"
    >>> normalise("안녕하세요, 세계.")
    '안녕하세요 세계'
    """
    lowered = unicodedata.normalize("NFC", text).lower()
    kept = "".join(map(_character, lowered))
    return unicodedata.normalize("NFC", " ".join(kept.split()))


def _character(character: str) -> str:
    if character.isspace():
        return " "
    if character in _SPOKEN:
        return character
    if character in _APOSTROPHES or character == "'":
        return "'"
    category = unicodedata.category(character)
    if category in ("Pd", "Pc") or character in _SEPARATORS:
        return " "
    if category.startswith("P") or (category in ("Cc", "Cf") and character not in _JOINERS):
        return ""
    return character
