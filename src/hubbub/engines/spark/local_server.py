"""Start a local Spark Connect server, protected by a token, that ends with this process.

Tested in tests/engines/test_spark.py.
"""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from hubbub.engines.base import EngineLimits, UnreachableError

#: Ends the server when the pipe to this process closes: by `close`, or when this process dies.
_WATCHDOG = (
    'exec 3<&0; "$@" </dev/null & server=$!; '
    "(cat <&3 >/dev/null; kill $server; sleep 10; kill -9 $server) >/dev/null 2>&1 & wait $server"
)
_SECONDS = 120
_TRIES = 3


class LocalServer:
    """A running server. Its log is discarded because it may contain data; it spills into a private folder."""

    def __init__(self, master: str, limits: EngineLimits, settings: Mapping[str, str] | None = None) -> None:
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            raise UnreachableError("Spark requires Java, which is not installed", "Install Java 17 or newer.")
        self._folder = tempfile.TemporaryDirectory(prefix="hubbub-spark-", ignore_cleanup_errors=True)
        try:
            for _ in range(_TRIES):
                self._port, self._token = _free_port(), token_hex(16)
                self._process = self._start(master, limits, settings or {})
                if self._reachable():
                    return
                self._end()
            raise UnreachableError(
                "the local Spark server did not start", "Check that Java is version 17 or newer, and engine.memory."
            )
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The address with the token. It must never be shown."""
        return f"sc://localhost:{self._port}/;token={self._token}"

    @property
    def alive(self) -> bool:
        """Whether the server is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process ID of the watchdog, which leads the process group."""
        return self._process.pid

    def close(self) -> None:
        """Stop the server and delete spilled data."""
        self._end()
        self._folder.cleanup()

    def _start(self, master: str, limits: EngineLimits, more: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        import pyspark

        home, folder = Path(pyspark.__file__).parent, self._folder.name
        settings: dict[str, str] = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.shuffle.partitions": "16",
            "spark.sql.artifact.isolation.enabled": "true",
            **more,
        }
        command = [
            "sh",
            "-c",
            _WATCHDOG,
            "sh",
            str(home / "bin" / "spark-submit"),
            "--master",
            master,
            "--driver-memory",
            f"{max(limits.server_memory, 1000)}m",
            "--name",
            "hubbub",
            *(part for item in settings.items() for part in ("--conf", "=".join(item))),
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {key: os.environ[key] for key in ("SPARK_CONF_DIR",) if key in os.environ}
        # pass the token in the environment, because other users can read the command line
        environment |= {"SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token, "SPARK_HOME": str(home)}
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
            umask=0o077,
        )

    def _reachable(self) -> bool:
        end = time.monotonic() + _SECONDS
        while self.alive and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False

    def _end(self) -> None:
        process = getattr(self, "_process", None)
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


_mutex = threading.Lock()
_running: dict[str, LocalServer] = {}


def address_of(master: str, limits: EngineLimits) -> str:
    """Return the address of this process's server for a master such as local[*], and start it if necessary."""
    with _mutex:
        server = _running.get(master)
        if server is None or not server.alive:
            if server is not None:
                server.close()
            server = _running[master] = LocalServer(master, limits)
        return server.address


@atexit.register
def stop() -> None:
    """Stop every server of this process."""
    with _mutex:
        while _running:
            _running.popitem()[1].close()
