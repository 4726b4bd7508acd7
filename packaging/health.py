"""Ask the server in this container whether it is alive: exit 0 or 1. For the HEALTHCHECK of the image."""

import http.client
import os
import ssl
import sys


def alive() -> bool:
    """Ask /healthz on loopback, over TLS where the server has a certificate."""
    port = int(os.environ.get("HUBBUB_PORT", "8321"))
    connection: http.client.HTTPConnection
    if os.environ.get("HUBBUB_TLS_CERT"):
        # loopback inside one container: what matters is that it answers, and the certificate names another host
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=4, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if alive() else 1)
