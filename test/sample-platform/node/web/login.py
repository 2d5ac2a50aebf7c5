"""The login of the enterprise variant's superuser. A token is a JSON web token (HS256) that every master can verify."""

import base64
import binascii
import hashlib
import hmac
import json
import time
import warnings
from functools import cache
from pathlib import Path

with warnings.catch_warnings():
    # Python 3.13 no longer has it, but this runs only on Debian 12, which has 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    import crypt

SETTINGS = Path("/opt/cluster/etc/login.json")
TOKEN_SECONDS = 5 * 24 * 3600
HEADER = {"alg": "HS256", "typ": "JWT"}


@cache
def settings() -> dict:
    return json.loads(SETTINGS.read_text(encoding="utf-8"))


def is_required() -> bool:
    return settings()["required"]


def token_for(uid: str, password: str) -> str | None:
    # The password is hashed for an unknown user too, so that the response time doesn't reveal which users exist.
    known, expected = settings()["uid"].encode(), settings()["hash"]
    try:
        hashed = crypt.crypt(password, expected) or ""
    except (ValueError, OSError):
        return None
    if not hmac.compare_digest(hashed, expected) or not hmac.compare_digest(uid.encode(errors="replace"), known):
        return None
    claims = encode({"uid": uid, "exp": int(time.time()) + TOKEN_SECONDS})
    unsigned = f"{encode(HEADER)}.{claims}"
    return f"{unsigned}.{signature(unsigned)}"


def permits(authorization: str) -> bool:
    """Accepts `token=TOKEN` with an unexpired token of ours. On open source, accepts everyone."""
    if not is_required():
        return True
    unsigned, _, given = authorization.removeprefix("token=").strip().rpartition(".")
    if not hmac.compare_digest(given.encode(errors="replace"), signature(unsigned).encode()):
        return False
    try:
        claims = json.loads(base64.urlsafe_b64decode(unsigned.partition(".")[2] + "=="))
    except (ValueError, binascii.Error):
        return False
    return claims["exp"] > time.time()


def signature(unsigned: str) -> str:
    digest = hmac.digest(settings()["token_secret"].encode(), unsigned.encode(errors="replace"), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def encode(value: dict) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
