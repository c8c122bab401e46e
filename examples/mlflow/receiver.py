#!/usr/bin/env python3
"""Receives webhooks of mlpromote, and writes promotions back to the MLflow registry that the models came from.

A promoted model version gets an alias, the name of the environment, and tags: mlpromote.ENVIRONMENT.release with the
release's digest, mlpromote.ENVIRONMENT.version, and mlpromote.ENVIRONMENT.verdict with one word for each engine. It needs
Python alone. Settings are variables of the environment:

  MLPROMOTE_SERVER, MLPROMOTE_TOKEN     the service, and a token that may read (none for an open service)
  WEBHOOK_SECRET                        "whsec_...", from the answer to the registration
  MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN or _USERNAME and _PASSWORD
  LISTEN                                HOST:PORT, 127.0.0.1:5099 by default; TLS is for the proxy in front
"""

import base64
import hashlib
import hmac
import json
import os
import re
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 1 << 20
MAX_AGE = 300  # seconds: a message that somebody recorded is not taken later
SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the credentials are for one server


OPENER = urllib.request.build_opener(NoRedirect)


def call(base, path, query=None, body=None, headers=None):
    url = base.rstrip("/") + path + ("?" + urllib.parse.urlencode(query) if query else "")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} | (headers or {}))
    with OPENER.open(request, timeout=8) as answer:  # the service waits 10 seconds
        return json.load(answer)


def mlpromote(path, query):
    token = os.environ.get("MLPROMOTE_TOKEN")
    return call(os.environ["MLPROMOTE_SERVER"], "/api/v1/" + path, query, headers={"Authorization": f"Bearer {token}"} if token else {})


def mlflow(path, body):
    headers, token, user = {}, os.environ.get("MLFLOW_TRACKING_TOKEN"), os.environ.get("MLFLOW_TRACKING_USERNAME")
    if user:
        both = f"{user}:{os.environ['MLFLOW_TRACKING_PASSWORD']}".encode()
        headers = {"Authorization": "Basic " + base64.b64encode(both).decode()}
    elif token:
        headers = {"Authorization": f"Bearer {token}"}
    return call(os.environ["MLFLOW_TRACKING_URI"], "/api/2.0/mlflow/" + path, body=body, headers=headers)


def signed(headers, body):
    """Reports whether the service sent the message now: Standard Webhooks, symmetric."""
    stamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"[0-9]{1,12}", stamp) or abs(time.time() - int(stamp)) > MAX_AGE:
        return False
    text = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(SECRET, text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(want, given) for given in headers.get("webhook-signature", "").split())


def facts(event):
    """Returns the model version of MLflow in the provenance, and the verdict of each engine. Only trusted keys in their roles count."""
    query = {"environment": event["environment"], "ref": event["release"]}
    origin, verdicts = None, {}
    for claim in sorted(mlpromote(f"models/{event['model']}/evidence", query)["claims"], key=lambda claim: claim.get("recorded", 0)):
        statement, trusted = claim["statement"], claim.get("roles", []) if claim.get("key") == "trusted" else []
        predicate = statement["predicate"]
        if statement["predicateType"] == "https://slsa.dev/provenance/v1" and "builder" in trusted:
            for source in predicate["buildDefinition"]["resolvedDependencies"]:
                if source["name"] == "source":
                    origin = re.fullmatch(r"mlflow:models:/([^/@]+)/([0-9]+)", source.get("uri", "")) or origin
        if statement["predicateType"] == "https://mlpromote.dev/parity/v1" and "verifier" in trusted:
            verdicts[claim["subject"]] = predicate["verdict"]  # of the newest report
    return origin, verdicts


def write_back(event):
    origin, verdicts = facts(event)
    if origin is None:
        return  # the model is not from MLflow
    name, version = origin.groups()
    words = {verdict: list(verdicts.values()).count(verdict) for verdict in sorted(set(verdicts.values()))}
    prefix = f"mlpromote.{event['environment']}."
    tags = {"release": event["release"], "version": event.get("version", ""), "verdict": ", ".join(f"{n} {v}" for v, n in words.items())}
    for key, value in tags.items():
        mlflow("model-versions/set-tag", {"name": name, "version": version, "key": prefix + key, "value": value})
    mlflow("registered-models/alias", {"name": name, "alias": event["environment"], "version": version})
    print(f"{name} version {version}: {event['environment']} has {event['release']}, {tags['verdict']}", flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            return self.send_error(413)
        body = self.rfile.read(int(length))
        if not signed(self.headers, body):
            return self.send_error(401)
        message = json.loads(body)
        try:
            if message["type"] in ("promote", "rollback"):
                write_back(message["data"])
        except OSError as err:  # of the network, or a refusal: the service sends the message again
            print(f"not written: {err}", flush=True)
            return self.send_error(503)
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    host, port = os.environ.get("LISTEN", "127.0.0.1:5099").rsplit(":", 1)
    ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()
