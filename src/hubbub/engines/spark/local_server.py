"""A Spark of one's own: a Spark Connect server on this machine, reachable by whoever knows its token, until we end."""

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

from hubbub.engines.duckdb.open import Limits

#: Ends the server when the pipe that we hold open closes: by `close`, or by our death, however sudden.
_WATCHED = (
    'exec 3<&0; "$@" </dev/null & server=$!; '
    "(cat <&3 >/dev/null; kill $server; sleep 10; kill -9 $server) >/dev/null 2>&1 & wait $server"
)
_SECONDS = 120
_TRIES = 3


class NoServerError(Exception):
    """No server could be started; says why and what to do."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


class Local:
    """A running server. Its log goes nowhere (it may hold cells), what it spills into a private folder."""

    def __init__(self, master: str, limits: Limits, settings: Mapping[str, str] | None = None) -> None:
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            raise NoServerError("Spark needs Java, which is not installed here", "Install Java 17 or newer.")
        self._folder = tempfile.TemporaryDirectory(prefix="hubbub-spark-", ignore_cleanup_errors=True)
        try:
            for _ in range(_TRIES):
                self._port, self._token = _free_port(), token_hex(16)
                self._process = self._started(master, limits, settings or {})
                if self._reachable():
                    return
                self._end()
            raise NoServerError(
                "no Spark could be started here", "Check that Java 17 or newer is there, and engine.memory."
            )
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Where it is; with its token, so never to be shown."""
        return f"sc://localhost:{self._port}/;token={self._token}"

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that watches it, the leader of its group."""
        return self._process.pid

    def close(self) -> None:
        """Stop it and remove what it spilled."""
        self._end()
        self._folder.cleanup()

    def _started(self, master: str, limits: Limits, more: Mapping[str, str]) -> "subprocess.Popen[bytes]":
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
            _WATCHED,
            "sh",
            str(home / "bin" / "spark-submit"),
            "--master",
            master,
            "--driver-memory",
            f"{max(limits.memory, 1000)}m",
            "--name",
            "hubbub",
            *(part for item in settings.items() for part in ("--conf", "=".join(item))),
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {key: os.environ[key] for key in ("SPARK_CONF_DIR",) if key in os.environ}
        # in the environment, which other users cannot read, and not in the command, which they can
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
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


_mutex = threading.Lock()
_running: dict[str, Local] = {}


def address_of(master: str, limits: Limits) -> str:
    """Find the server of this process for a master such as local[*], started anew where there is none that lives."""
    with _mutex:
        found = _running.get(master)
        if found is None or not found.alive:
            if found is not None:
                found.close()
            found = _running[master] = Local(master, limits)
        return found.address


@atexit.register
def stop() -> None:
    """Stop every server of this process."""
    with _mutex:
        while _running:
            _running.popitem()[1].close()
