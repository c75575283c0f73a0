"""What the server offers over HTTP, as OpenAPI 3.1, and as a page that needs no other host."""

from __future__ import annotations

from html import escape
from typing import Any

from nearfuture import __version__
from nearfuture.serving.errors import CODES
from nearfuture.serving.protocols.transcription_request import FORMATS, GRANULARITIES
from nearfuture.serving.service import Service

_JSON = "application/json"

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:0 .2rem}td,th{text-align:left;padding:.2rem 1rem .2rem 0;"
    "vertical-align:top}:root{color-scheme:light dark}"
)


def openapi_document(service: Service) -> dict[str, Any]:
    """Return the document for `/openapi.json`."""
    keyed: list[dict[str, list[str]]] = [{"key": []}] if service.settings.api_key else []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nearfuture",
            "version": __version__,
            "description": "Live streams are websockets, which OpenAPI cannot describe: /stream, "
            "/vosk and /v1/realtime.",
        },
        "security": keyed,
        "paths": {
            "/": {"get": _gets("Models, their budgets, protocols", _JSON)},
            "/health": {
                "get": _gets("Whether every engine works", _JSON, ("internal",), keyless=True)
            },
            "/ready": {
                "get": _gets(
                    "Whether new streams are accepted",
                    _JSON,
                    ("busy", "draining", "internal"),
                    keyless=True,
                )
            },
            "/metrics": {"get": _gets("Metrics for Prometheus", "text/plain")},
            "/openapi.json": {"get": _gets("This document", _JSON)},
            "/docs": {"get": _gets("This document as a page", "text/html")},
            "/v1/models": {"get": _gets("The models, as OpenAI lists them", _JSON)},
            "/v1/models/{name}": {
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "get": _gets("One model", _JSON, missing=True),
            },
            "/v1/audio/transcriptions": {"post": _transcription(service)},
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"enum": ["invalid_request_error", "server_error"]},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def _transcription(service: Service) -> dict[str, Any]:
    max_bytes = service.limits.max_file_bytes
    text = {"type": "string"}
    form = {
        "type": "object",
        "required": ["file", "model"],
        "properties": {
            "file": {
                "description": f"A recording of {max_bytes} bytes at most.",
                "type": "string",
                "contentMediaType": "application/octet-stream",
            },
            "model": {**text, "examples": list(service.models)},
            "response_format": {"enum": list(FORMATS), "default": "json"},
            "timestamp_granularities[]": {
                "description": "With verbose_json.",
                "type": "array",
                "items": {"enum": list(GRANULARITIES)},
            },
            "stream": {
                "description": "Server-sent events, with json or text.",
                "type": "boolean",
                "default": False,
            },
            "language": {**text, "description": "Repeated by verbose_json; changes nothing."},
            "temperature": {"type": "number", "const": 0, "default": 0},
        },
    }
    codes = ("invalid", "damaged", "idle", "too_large", "too_long", "internal", "busy")
    return {
        "summary": "A recording as text",
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}},
        "responses": {
            "200": {
                "description": "The text, in the form of response_format",
                "content": {
                    _JSON: {"schema": {"type": "object", "properties": {"text": text}}},
                    "text/plain": {"schema": text},
                    "text/event-stream": {"schema": text},
                },
            },
            **_errors(("unauthorized", "forbidden", *codes, "draining", "no_space"), missing=True),
        },
    }


def _gets(
    summary: str,
    kind: str,
    codes: tuple[str, ...] = (),
    *,
    keyless: bool = False,
    missing: bool = False,
) -> dict[str, Any]:
    schema = {"type": "object" if kind == _JSON else "string"}
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": {kind: {"schema": schema}}},
            **_errors(
                codes if keyless else ("unauthorized", "forbidden", "busy", *codes), missing=missing
            ),
        },
    }
    return {**operation, "security": []} if keyless else operation


def _errors(codes: tuple[str, ...], *, missing: bool) -> dict[str, Any]:
    """Return the replies with errors: a status may have several codes."""
    by_status: dict[int, list[str]] = {404: ["model_not_found"]} if missing else {}
    for code in codes:
        by_status.setdefault(CODES[code][0], []).append(code)
    schema = {"$ref": "#/components/schemas/Error"}
    return {
        str(status): {"description": ", ".join(names), "content": {_JSON: {"schema": schema}}}
        for status, names in sorted(by_status.items())
    }


def html_page(service: Service) -> str:
    """Return the document as a page: one file, without scripts, fonts or pictures from anywhere."""
    document = openapi_document(service)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>nearfuture</title>"
        f"<style>{_STYLE}</style><h1>nearfuture {escape(__version__)}</h1>"
        f"<p>{escape(document['info']['description'])} "
        f"<a href=/openapi.json>openapi.json</a> is this page for programs.</p>"
    ]
    for path, item in document["paths"].items():
        for method in ("get", "post"):
            if method in item:
                parts.append(_operation(method.upper(), path, item[method]))
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    fields = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(_kind(schema))}"
        f"<td>{escape(schema.get('description', ''))}"
        for form in content.values()
        for name, schema in form["schema"]["properties"].items()
    )
    replies = "".join(
        f"<tr><td>{status}<td>{escape(reply['description'])}"
        for status, reply in operation["responses"].items()
    )
    return (
        f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
        + (f"<table><tr><th>field<th>kind<th>{fields}</table>" if fields else "")
        + f"<table><tr><th>status<th>{replies}</table>"
    )


def _kind(schema: dict[str, Any]) -> str:
    item = schema.get("items", schema)
    return ", ".join(item["enum"]) if "enum" in item else str(item["type"])
