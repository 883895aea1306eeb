"""Validates a Workflow Run RO-Crate by roc-validator, in an environment of its own and without a network.

    PYTHON_OF_VALIDATOR tests/validate_crate.py CRATE CONTEXT.jsonld

The context is the one that comes with rocrate. The validator asks for the names of Bioschemas as RO-Crate 1.1 has them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import requests
import requests_cache
from rocrate_validator import models, services


def answer_with(context: bytes) -> None:
    """Have every request for a context answered by this one."""

    def send(_session: object, request: requests.PreparedRequest, **_options: Any) -> requests.Response:
        response = requests.Response()
        response.url, response.request, response.status_code = str(request.url), request, 200
        response._content, response.headers["Content-Type"] = context, "application/ld+json"
        return response

    requests.Session.send = requests_cache.CachedSession.send = send  # type: ignore[method-assign,assignment]


def main(crate: str, context: Path) -> None:
    """Print what a required check finds, and exit with 1 if there is any."""
    known = json.loads(context.read_text(encoding="utf-8"))
    for name, place in known["@context"].items():
        for kind in ("terms", "types"):
            if isinstance(place, str) and f"bioschemas.org/{kind}/" in place:
                known["@context"][name] = place.replace(f"bioschemas.org/{kind}/", "bioschemas.org/")
    answer_with(json.dumps(known).encode())
    settings = services.ValidationSettings(
        rocrate_uri=crate,
        requirement_severity=models.Severity.REQUIRED,
        profile_identifier="workflow-run-crate",
        skip_availability_check=True,
    )
    result = services.validate(settings)
    for issue in result.get_issues(models.Severity.REQUIRED):
        print(issue.check.identifier, issue.message)
    sys.exit(not result.passed())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
