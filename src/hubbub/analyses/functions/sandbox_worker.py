"""The worker process of the sandbox: runs an untrusted function on one block. It imports nothing from hubbub.

It first loads libraries, with no data in its memory. For each block it forks: the child reads the block's rows from an
in-memory file, installs a system call filter, runs the function and writes a fixed number of doubles. The filter allows
what computing needs (memory, clocks, reading and writing open files, exiting) and denies the rest: no file, socket,
process, thread, signal to others, trace or setting. The memory of an earlier block is gone with its child, and the
parent of all children never holds a row.

Tested in tests/analyses/functions/test_sandbox.py.
"""

import __future__

import ctypes
import importlib
import json
import math
import os
import pickle
import platform
import random
import resource
import signal
import socket
import struct
import sys

import numpy as np

#: For each architecture: its number in the filter, and the allowed system calls.
_CALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    # read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn poll madvise mremap
    # sched_yield nanosleep getpid exit gettimeofday getrusage times sigaltstack gettid time futex sched_getaffinity
    # restart_syscall clock_gettime clock_getres clock_nanosleep exit_group getrandom
    "x86_64": (
        0xC000003E,
        (
            0,
            1,
            3,
            5,
            8,
            9,
            10,
            11,
            12,
            13,
            14,
            15,
            7,
            28,
            25,
            24,
            35,
            39,
            60,
            96,
            98,
            100,
            131,
            186,
            201,
            202,
            204,
            219,
            228,
            229,
            230,
            231,
            318,
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (
            63,
            64,
            57,
            80,
            62,
            222,
            226,
            215,
            214,
            134,
            135,
            139,
            73,
            233,
            216,
            124,
            101,
            172,
            93,
            169,
            165,
            153,
            132,
            178,
            98,
            123,
            128,
            113,
            114,
            115,
            94,
            278,
        ),
    ),
}

_DENY, _ALLOW, _KILL = 0x00050000 | 1, 0x7FFF0000, 0x80000000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _PARENT_DEATH, _DUMPABLE = 38, 22, 2, 1, 4
#: New user, network, mount, UTS and IPC namespaces: a second barrier on systems that allow them.
_NAMESPACES = 0x10000000 | 0x40000000 | 0x00020000 | 0x04000000 | 0x08000000

#: Loaded beforehand, because the function cannot open files.
_LIBRARIES = (
    "bisect",
    "collections",
    "datetime",
    "decimal",
    "fractions",
    "functools",
    "heapq",
    "itertools",
    "json",
    "math",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "operator",
    "random",
    "re",
    "statistics",
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _lock(libc: ctypes.CDLL) -> None:
    """Allow the listed system calls of this machine and deny all others, permanently and for all descendants."""
    machine, allowed = _CALLS[platform.machine()]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps += [(_EQUAL, len(allowed) - place, 0, call) for place, call in enumerate(allowed)]
    steps += [(_RETURN, 0, 0, _DENY), (_RETURN, 0, 0, _ALLOW)]
    text = b"".join(struct.pack("HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(text)
    program = _Program(len(steps), ctypes.cast(kept, ctypes.c_void_p))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        os._exit(3)


def _limit(memory: int, seconds: float) -> None:
    whole = math.ceil(seconds) + 1
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, whole),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _block(order: dict[str, object], libc: ctypes.CDLL, rows_file: int, answer: int) -> None:
    """Run a function on one block and write its doubles, or nothing on failure."""
    libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_DUMPABLE, 0, 0, 0, 0)
    with os.fdopen(rows_file, "rb") as file:
        rows = pickle.load(file)  # noqa: S301 - written by the curator
    for number in range(3, 64):
        if number != answer:
            try:
                os.close(number)
            except OSError:
                continue
    random.seed()  # children inherit the parent's state
    np.random.seed()
    _limit(int(str(order["memory"])), float(str(order["seconds"])))
    _lock(libc)
    scope: dict[str, object] = {"__name__": "__cell__", "np": np, "math": math}
    flags = __future__.annotations.compiler_flag  # annotations may refer to missing names
    code = compile(str(order["text"]), "<function>", "exec", flags, dont_inherit=True)
    exec(code, scope)  # noqa: S102 - this is the purpose of the sandbox
    function = scope[str(order["name"])]
    found = np.asarray(function(rows), dtype=np.float64).reshape(-1)  # type: ignore[operator]
    if found.size == order["outputs"]:
        os.write(answer, found.tobytes())


def main(channel: socket.socket) -> None:
    """Load libraries, then run blocks one after the other until the curator closes the channel."""
    order = json.loads(channel.recv(1 << 22))
    libc = ctypes.CDLL(None, use_errno=True)
    for name in (*_LIBRARIES, *order["imports"]):
        importlib.import_module(name)
    libc.unshare(_NAMESPACES)  # optional: the filter suffices where namespaces are not available
    channel.send(b"R")
    while True:
        message, files, _, _ = socket.recv_fds(channel, 16, 2)
        if message.decode() not in order["functions"] or len(files) != 2:
            return
        child = os.fork()
        if child == 0:
            code = 1
            try:
                channel.close()
                _block(order | order["functions"][message.decode()], libc, files[0], files[1])
                code = 0
            finally:
                os._exit(code)
        for each in files:
            os.close(each)
        channel.recv(16)  # the time is up, or the curator is gone: end the block in either case
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        channel.send(b"D")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
