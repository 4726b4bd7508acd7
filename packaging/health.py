"""Ask the server in this container whether it is alive: exit 0 or 1. For the HEALTHCHECK of the image."""

import http.client
import os
import ssl
import sys


def alive(port: int) -> bool:
    """Ask /healthz on loopback, in the clear or, where the server has a certificate, over TLS."""
    # what matters is that it answers here, inside one container: the certificate names the host that others use
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for connection in (
        http.client.HTTPConnection("127.0.0.1", port, timeout=2),
        http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context),
    ):
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return True
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
    return False


if __name__ == "__main__":
    sys.exit(0 if alive(int(os.environ.get("HUBBUB_PORT", "8321"))) else 1)
