"""Where a service listens, and who may reach it; a supervisor needs no more of HTTP than this."""

import ipaddress
import socket

from melee.errors import DataError, InputError
from melee.serve.keys import Keys

DRAIN = 10
"""Seconds that requests have to finish when the service stops."""


def is_loopback(host: str) -> bool:
    """Whether nobody outside of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(host: str, keys: Keys) -> None:
    """Refuse to serve the world without a key."""
    if not keys and not is_loopback(host):
        raise InputError(
            f"--host is {host}, which others can reach, and there are no keys; give --keys FILE, "
            "or set MELEE_KEY"
        )


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket at an address; `shared` with others of this user that listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        made.bind((host, port))
        made.listen(2048)
    except OSError as error:
        made.close()
        raise DataError(
            f"{host}:{port} cannot be listened at ({error.strerror}); give another --port, or end "
            "what listens there"
        ) from None
    return made
