"""Requests to generate, checked, and their answers: completions and chats, streamed and whole."""

import time
import uuid

from vllm.text import chat_tokens, tokens

COMPLETION_MAX_TOKENS = 16


class BadRequest(Exception):
    """A request that gets an error object instead of an answer."""

    def __init__(self, message, param, status=400, kind="BadRequestError"):
        super().__init__(message)
        self.param, self.status, self.kind = param, status, kind


class Answer:
    """What the two kinds share. A kind says how its prompt is counted and how a token, and the whole, look."""

    prompt_field = prefix = ""

    def __init__(self, request, args):
        self.model = request.get("model") or args.served_model_name[0]
        if self.model not in args.served_model_name:
            raise BadRequest(f"The model `{self.model}` does not exist. Valid aliases: {', '.join(args.served_model_name)}.", "model",
                             404, "NotFoundError")
        if self.prompt_field not in request:
            raise BadRequest(f"Field required: {self.prompt_field}", f"body.{self.prompt_field}", kind="Bad Request")
        self.prompt_tokens = self.count_prompt(request[self.prompt_field])
        room = args.max_model_len - self.prompt_tokens
        if room < 1:
            raise BadRequest(f"This model's maximum context length is {args.max_model_len} tokens. However, your prompt contains at least "
                             f"{self.prompt_tokens} input tokens, which exceeds this limit.", "input_tokens")
        asked = request.get("max_completion_tokens") or request.get("max_tokens")
        if asked and asked > args.max_model_len:
            raise BadRequest(f"max_tokens={asked} cannot be greater than max_model_len={args.max_model_len}. Please request fewer "
                             "output tokens.", "max_tokens")
        self.max_tokens = min(asked or self.default_max_tokens(room), room)
        self.min_tokens = request.get("min_tokens") or 0
        self.ignore_eos = bool(request.get("ignore_eos"))
        self.stream = bool(request.get("stream"))
        options = request.get("stream_options") or {}
        self.usage_at_end = bool(options.get("include_usage"))
        self.usage_always = bool(options.get("continuous_usage_stats"))
        self.id = f"{self.prefix}-{uuid.uuid4().hex[:16]}"
        self.created = int(time.time())
        self.sent = 0

    def generated_by(self, engine):
        return engine.generate(self.prompt_tokens, self.max_tokens, self.min_tokens, self.ignore_eos)

    def usage(self):
        return {"prompt_tokens": self.prompt_tokens, "total_tokens": self.prompt_tokens + self.sent, "completion_tokens": self.sent}

    def frame(self, kind, choices):
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def chunks(self, generated):
        yield from self.opening()
        for text, reason in generated:
            self.sent += 1
            choice = {"index": 0, **self.piece(text), "logprobs": None, "finish_reason": reason}
            if reason:
                choice["stop_reason"] = None
            chunk = self.frame(self.chunk_kind, [choice])
            if self.usage_always:
                chunk["usage"] = self.usage()
            yield chunk
        if self.usage_at_end:
            yield self.frame(self.chunk_kind, []) | {"usage": self.usage()}

    def whole(self, generated):
        pieces, reason = [], None
        for text, reason in generated:
            self.sent += 1
            pieces.append(self.piece(text))
        choice = {"index": 0, **self.joined(pieces), "logprobs": None, "finish_reason": reason, "stop_reason": None}
        return self.frame(self.whole_kind, [choice]) | {"usage": self.usage()}

    def opening(self):
        return []


class Completion(Answer):
    prompt_field, prefix = "prompt", "cmpl"
    chunk_kind = whole_kind = "text_completion"

    def count_prompt(self, prompt):
        """Text, or the tokens themselves."""
        return len(tokens(prompt) if isinstance(prompt, str) else prompt)

    def default_max_tokens(self, _room):
        return COMPLETION_MAX_TOKENS

    def piece(self, text):
        return {"text": text}

    def joined(self, pieces):
        return {"text": "".join(piece["text"] for piece in pieces)}


class Chat(Answer):
    prompt_field, prefix = "messages", "chatcmpl"
    chunk_kind, whole_kind = "chat.completion.chunk", "chat.completion"

    def __init__(self, request, args):
        super().__init__(request, args)
        # A reasoning model's first tokens are its thoughts, which go into a field of their own.
        self.thoughts = self.max_tokens // 2 if args.reasoning_parser else 0

    def count_prompt(self, messages):
        return len(chat_tokens(messages))

    def default_max_tokens(self, room):
        return room

    def opening(self):
        delta = {"role": "assistant", "content": ""}
        yield self.frame(self.chunk_kind, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def piece(self, text):
        return {"delta": {"reasoning" if self.sent <= self.thoughts else "content": text}}

    def joined(self, pieces):
        text = {"reasoning": "", "content": ""}
        for piece in pieces:
            for field, value in piece["delta"].items():
                text[field] += value
        return {"message": {"role": "assistant", "content": text["content"], "reasoning": text["reasoning"] or None}}
