"""Starts a program on a machine that lacks something: its kernel answers as if it had no such call.

    without.py [landlock] [namespaces] -- PROGRAM ARGUMENT …

Landlock: its first call is unknown. Namespaces: user namespaces are refused, as many containers do.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

UNSHARE = {"x86_64": 272, "aarch64": 97}[platform.machine()]
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]
LANDLOCK_CREATE_RULESET = 444
CLONE_NEWUSER = 0x10000000
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENT_AT = 0, 4, 16


def line(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def main():
    at = sys.argv.index("--")
    lacks, command = sys.argv[1:at], sys.argv[at + 1 :]
    lines = [line(LOAD, ARCHITECTURE_AT), line(JUMP_EQUAL, ARCHITECTURE, 1, 0), line(RETURN, ALLOW)]
    if "landlock" in lacks:
        lines += [line(LOAD, NUMBER_AT), line(JUMP_EQUAL, LANDLOCK_CREATE_RULESET, 0, 1)]
        lines += [line(RETURN, REFUSE | errno.ENOSYS)]
    if "namespaces" in lacks:
        lines += [line(LOAD, NUMBER_AT), line(JUMP_EQUAL, UNSHARE, 0, 3)]
        lines += [line(LOAD, ARGUMENT_AT), line(JUMP_SET, CLONE_NEWUSER, 0, 1)]
        lines += [line(RETURN, REFUSE | errno.EPERM)]
    lines += [line(RETURN, ALLOW)]
    text = b"".join(lines)
    kept = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        sys.exit("the filter was refused: " + os.strerror(ctypes.get_errno()))
    os.execvp(command[0], command)


main()
