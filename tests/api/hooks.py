"""What schemathesis makes up seldom names anything that exists, and then every answer is 404. So names that the server
told are put into about half of the requests. Waiting is kept short, and nothing else is changed."""

import os
import random

import schemathesis

AGENTS = ["record-keeper", "refund-desk", "slow-transfer", "trip-planner"]
KEPT_MAX = 40
WAIT_MAX = 60

chance = random.Random(os.environ.get("HOLDPOINT_API_SEED", "0"))
known = {"agents": list(AGENTS)}


@schemathesis.hook
def before_call(context, case, kwargs):
    for name in case.path_parameters or {}:
        kind = case.operation.path.split("/")[3]
        case.path_parameters[name] = one_of(kind, case.path_parameters[name])
    if isinstance(case.query, dict):
        for name, kind in {"session": "sessions", "agent": "agents", "cursor": "cursors"}.items():
            if isinstance(case.query.get(name), str):
                case.query[name] = one_of(kind, case.query[name])
        if is_wait(case.query.get("wait")):
            case.query["wait"] = chance.choice([0, 0, 0, 0, 0, 0, 0, 1])
    if isinstance(case.body, dict):
        for name, kind in {"agent_id": "agents", "session_id": "sessions", "args_sha256": "digests"}.items():
            if isinstance(case.body.get(name), str):
                case.body[name] = one_of(kind, case.body[name])
        # A decision with fields of other decisions is refused, and most that are made up have some.
        if "decision" in case.body and chance.random() < 0.5:
            kept = chance.choice(["args_sha256", "always", "args", "content", "message"])
            case.body = {name: case.body[name] for name in ["decision", kept] if name in case.body}
        elif "decision" in case.body and chance.random() < 0.2:
            case.body = {"decision": chance.choice(["approve", "deny"]), "always": {"scope": "session"}}
        # The same key with another body is refused, and few keys are made up.
        if isinstance(case.headers.get("Idempotency-Key"), str) and chance.random() < 0.5:
            case.headers["Idempotency-Key"] += str(chance.randrange(10**6))


@schemathesis.hook
def after_call(context, case, response):
    if response.headers.get("content-type", [""])[0].startswith("application/json"):
        remember(response.json())


def one_of(kind, otherwise):
    """Something of this kind that exists, half of the time."""
    return chance.choice(known[kind]) if known.get(kind) and chance.random() < 0.5 else otherwise


def is_wait(value):
    return str(value).isascii() and str(value).isdigit() and 0 < int(value) <= WAIT_MAX


def remember(value):
    if isinstance(value, list):
        for each in value[:KEPT_MAX]:
            remember(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            kind = kind_of(name, each)
            if kind and each not in known.setdefault(kind, []):
                known[kind] = (known[kind] + [each])[-KEPT_MAX:]
            remember(each)


def kind_of(name, value):
    if not isinstance(value, str):
        return None
    if name == "id":
        prefix = value.split("_")[0]
        return {"pau": "pauses", "req": "requests"}.get(prefix, "rules")
    names = {"run_id": "runs", "session_id": "sessions", "request_id": "requests", "args_sha256": "digests"}
    return names.get(name, "cursors" if name == "next_cursor" else None)
