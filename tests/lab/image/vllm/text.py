"""A tokenizer without a vocabulary, and words to answer with. All that matters is that counts are the same everywhere."""

import re
import zlib

_TOKEN = re.compile(r" ?[^\W_]{1,6}|\s|[^\w\s]|_")
_CHAT_TOKENS_EACH, _CHAT_TOKENS_END = 4, 3
_WORDS = " the of a cable and node that so far ring over link to each with in light from as well part way one more".split()


def tokens(text):
    return [zlib.crc32(piece.encode()) % 32000 for piece in _TOKEN.findall(text)]


def chat_tokens(messages):
    """A chat's prompt: each message costs its template's tokens too."""
    counted = []
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        counted += [1] * _CHAT_TOKENS_EACH + tokens(content)
    return counted + [2] * _CHAT_TOKENS_END


def word(index):
    """The text of an answer's token."""
    return (" " if index else "") + _WORDS[index * 7 % len(_WORDS)]
