"""Record a run with strace: every write with its bytes, every sync, rename and unlink, in order.

Calls of two threads may overlap; each call is stored with the moments at which it began and ended, so that the model of
the disk (`disk.py`) counts a write as synced only if it had ended before the sync began.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.campaigns.rig.disk import Inode, Recording, Sync, Write

_TRACED = (
    "openat,open,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,ftruncate,truncate,fallocate,"
    "rename,renameat,renameat2,unlink,unlinkat,link,linkat,sync_file_range,copy_file_range,sendfile"
)
_LINE = re.compile(r"(?P<pid>\d+)\s+(?P<text>.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(?P<name>\w+)\((?P<args>.*)\)\s+= (?P<result>-?\d+)(?:<(?P<path>[^>]*)>)?", re.DOTALL)
_DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<([^>]*)>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def record(command: Sequence[str], folder: Path, acks: Path, trace: Path) -> Recording:
    """Run a command under strace and record what it does to one (empty) folder."""
    subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-y",
            "-xx",
            "-s",
            "16777216",
            "--seccomp-bpf",
            "-e",
            "signal=none",
            "-e",
            f"trace={_TRACED}",
            "-o",
            str(trace),
            *command,
        ],
        check=True,
    )
    with trace.open() as lines:
        return _Reader(folder, acks).read(lines)


class _Reader:
    """Follows a trace: the position of each descriptor, and the file of each name."""

    def __init__(self, folder: Path, acks: Path) -> None:
        self.recording = Recording()
        self._folder, self._acks = str(folder), str(acks)
        self._live: dict[str, Inode] = {}
        self._position: dict[int, int | None] = {}  # None: every write appends

    def read(self, lines: Iterator[str]) -> Recording:
        waiting: dict[str, tuple[int, str]] = {}
        for moment, line in enumerate(lines):
            match = _LINE.match(line.rstrip("\n"))
            if match is None:
                continue
            pid, text = match["pid"], match["text"]
            begun = moment
            if text.endswith("<unfinished ...>"):
                waiting[pid] = moment, text.removesuffix("<unfinished ...>")
                continue
            if text.startswith("<..."):
                begun, first = waiting.pop(pid)
                text = first.rstrip() + _RESUMED.sub("", text, count=1)
            self._call(begun, moment, text)
            self.recording.moments = moment
        return self.recording

    def _inside(self, path: str) -> str | None:
        name = Path(path)
        wanted = str(name.parent) == self._folder and not name.name.endswith("-shm")
        return name.name if wanted and not path.endswith("(deleted)") else None

    def _call(self, begun: int, ended: int, text: str) -> None:
        match = _CALL.match(text)
        if match is None or int(match["result"]) < 0:
            return
        name, args, result = match["name"], match["args"], int(match["result"])
        strings = [_plain(found) for found in _STRING.findall(args)]
        if name in ("open", "openat", "creat"):
            self._open(ended, result, strings[0].decode(), args, made=name == "creat")
        elif name in ("unlink", "unlinkat"):
            self._rename(ended, strings[0].decode(), None)
        elif name in ("rename", "renameat", "renameat2"):
            self._rename(ended, strings[0].decode(), strings[1].decode())
        else:
            self._on_descriptor(begun, ended, name, args, result, strings)

    def _open(self, moment: int, descriptor: int, path: str, args: str, *, made: bool) -> None:
        name = self._inside(path)
        if name is None:
            return
        self._position[descriptor] = None if "O_APPEND" in args else 0
        if name not in self._live and (made or "O_CREAT" in args):
            self._live[name] = Inode()
            self.recording.names.setdefault(name, []).append((moment, self._live[name]))
        elif made or "O_TRUNC" in args:
            self._live[name].write(Write(moment, moment, 0, None))

    def _rename(self, moment: int, old: str, new: str | None) -> None:
        before = self._inside(old)
        after = None if new is None else self._inside(new)
        if before is None and after is None:
            return
        if before is None or (after is None and new is not None):
            raise ValueError(f"a file moved in or out of {self._folder}, which is not modelled")
        inode = self._live.pop(before)
        self.recording.names[before].append((moment, None))
        if after is not None:
            self._live[after] = inode
            self.recording.names.setdefault(after, []).append((moment, inode))

    def _on_descriptor(self, begun: int, ended: int, call: str, args: str, result: int, strings: list[bytes]) -> None:
        match = _DESCRIPTOR.match(args)
        if match is None:
            return
        path, descriptor = _plain(match[2]).decode(), int(match[1])
        if path == self._acks:
            self.recording.acks += [(begun, line) for line in strings[0].decode().splitlines()]
        if path == self._folder and call in ("fsync", "fdatasync"):
            self.recording.folder_syncs.append(Sync(begun, ended))
        name = self._inside(path)
        if name is not None:
            last = args.rsplit(",", 1)[-1]
            self._on_file(
                self._live[name], descriptor, begun, ended, call, last, strings[0][:result] if strings else b""
            )
            if call == "lseek" and self._position[descriptor] is not None:
                self._position[descriptor] = result

    def _on_file(
        self, inode: Inode, descriptor: int, begun: int, ended: int, call: str, last: str, data: bytes
    ) -> None:
        if call in ("fsync", "fdatasync"):
            inode.syncs.append(Sync(begun, ended))
        elif call == "ftruncate":
            inode.write(Write(begun, ended, int(last), None))
        elif call == "pwrite64":
            inode.write(Write(begun, ended, int(last), data))
        elif call == "write":
            position = self._position[descriptor]
            inode.write(Write(begun, ended, inode.size if position is None else position, data))
            if position is not None:
                self._position[descriptor] = position + len(data)
        elif call != "lseek":
            raise ValueError(f"the recording has a {call}, which is not modelled")


def _plain(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))
