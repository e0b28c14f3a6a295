"""Read-only HTTP interface: levels, stations and health."""

from __future__ import annotations

import json
import math
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from . import MM_PER_M, metrics
from .auth import KeyRing, TokenBucket
from .errors import AuthError, EbblineError, SpanTooLongError, UnknownStationError
from .settings import ApiSettings
from .stations import StationRegistry
from .store import Store

STATUS = {AuthError: 401, UnknownStationError: 404, SpanTooLongError: 413}


class ApiState:
    """What all request handlers share."""

    def __init__(self, settings: ApiSettings, store: Store, registry: StationRegistry, keys: KeyRing):
        self.settings = settings
        self.store = store
        self.registry = registry
        self.keys = keys
        self.bucket = TokenBucket(settings.rate_per_s, settings.burst)
        self.last_frame: dict[str, float] = {}

    def request_cost(self, begin: int, end: int) -> float:
        """One token for each begun week that a request spans, at least one."""
        return max(1.0, math.ceil((end - begin) / (7 * 86400)))

    def levels(self, station: str, begin: int, end: int) -> dict[str, Any]:
        """Samples as parallel arrays, heights in metres relative to the gauge."""
        if end - begin > self.settings.max_span_days * 86400:
            raise SpanTooLongError(f"{(end - begin) // 86400} days, {self.settings.max_span_days} are allowed")
        samples = self.store.read(self.registry.by_key(station).key, begin, end)
        return {
            "station": station,
            "at": [s.at for s in samples],
            "height_m": [None if s.height_mm is None else s.height_mm / MM_PER_M for s in samples],
            "flag": [s.flag.name.lower() for s in samples],
        }

    def health(self, now: float) -> tuple[int, dict[str, Any]]:
        """503 if any class A station is silent; others only show in the list.

        A station that never sent since the start counts from the start on, so
        the first minutes after a restart are healthy.
        """
        silent, severe = [], False
        for station in self.registry:
            last = self.last_frame.setdefault(station.key, now)
            if now - last > station.silence_limit_s():
                silent.append(station.key)
                severe = severe or station.class_ == "A"
        return (503 if severe else 200), {"silent": silent}


def make_handler(state: ApiState) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "ebbline"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            try:
                if url.path == "/health":
                    status, body = state.health(time.time())
                    return self._json(status, body)
                if url.path == "/metrics":
                    return self._text(200, metrics.render())
                client = state.keys.authenticate(self.headers.get("Authorization"))
                if url.path == "/v1/levels":
                    query = {k: v[0] for k, v in parse_qs(url.query).items()}
                    begin, end = int(query["begin"]), int(query["end"])
                    wait = state.bucket.take(client.name, state.request_cost(begin, end))
                    if wait > 0:
                        return self._json(429, {"error": "rate"}, {"Retry-After": str(math.ceil(wait))})
                    if not client.may_read(query["station"]):
                        # 404 and not 403: who may not read a station is not
                        # told that it exists.
                        raise UnknownStationError(query["station"])
                    return self._json(200, state.levels(query["station"], begin, end))
                self._json(404, {"error": "path"})
            except (KeyError, ValueError) as error:
                self._json(400, {"error": str(error)})
            except EbblineError as error:
                self._json(STATUS.get(type(error), 500), {"error": error.code})

        def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            self._send(status, "application/json", json.dumps(body).encode(), headers or {})

        def _text(self, status: int, body: str) -> None:
            self._send(status, "text/plain; charset=utf-8", body.encode(), {})

        def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            metrics.count("api_requests")

    return Handler


def serve(state: ApiState) -> None:
    server = ThreadingHTTPServer((state.settings.bind, state.settings.port), make_handler(state))
    server.serve_forever()
