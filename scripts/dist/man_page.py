"""The man page, made from what `matsu --help` prints, so that it cannot say anything else."""

import re
import subprocess

from common import VERSION


def help_of(binary, *words):
    return subprocess.run([binary, *words, "--help"], check=True, stdout=subprocess.PIPE).stdout.decode()


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.splitlines())


def block(text):
    return f".nf\n{escape(text.strip())}\n.fi\n"


def page(binary):
    """roff, section 1."""
    top = help_of(binary).replace(binary.name + " ", "matsu ")
    commands = re.findall(r"^  ([a-z-]+)  ", top.split("Commands:")[1].split("Options:")[0], re.M)
    out = [f'.TH MATSU 1 "" "matsu {VERSION}" "User Commands"\n.SH NAME\nmatsu \\- asynchronous work for AI agents\n']
    out.append(".SH SYNOPSIS\n.B matsu\n[OPTIONS] COMMAND\n")
    out.append(".SH DESCRIPTION\n" + block(top))
    out.append(".SH COMMANDS\n")
    for command in commands:
        if command == "help":
            continue
        text = help_of(binary, command).replace(f"{binary.name} {command}", f"matsu {command}")
        out.append(f".SS matsu {escape(command)}\n" + block(text))
    return "".join(out).encode()
