"""What Claude Code has of its own: a command of its shell in the background, in one session."""

import re
import subprocess
import time

from . import shared
from .model import Call, Model

NAME = "Claude Code, a background command"
HOW = (
    "`claude -p` with its own tool `Bash` and `run_in_background`; the notice at its end names a file, which the model "
    "reads. A next session is `claude -p` in the same folder with the prompt “Hello.”; the conversation is "
    "continued with `--continue`, where the model reads that the command did not finish and that it is to look at its file"
)
PARALLEL = 5
FAULTS = ["none", "parent killed", shared.CONTINUED]
NOT_RUN = {
    "daemon killed": "there is no daemon: the session itself runs the command",
    "both stopped": "the same as the parent killed: there is no daemon",
    "client timeout": "the call that starts the command returns at once; there is no waiting call to give up",
    "question": "a command of the shell cannot ask its parent",
}


class Script(shared.Script):
    def parent(self, one, asked):
        if one.delivered:
            return "It is done."
        if "<task-notification>" in asked.news:
            # Of a command of an older process the notice says to look at the output, whose place the start has named.
            named = re.search(r"<output-file>([^<]+)<|written to: (\S+\.output)", asked.said)
            return Call("Read", {"file_path": named.group(1) or named.group(2)})
        if not one.began:
            one.began = asked.at
            head, tail = one.mark[:8], one.mark[8:]
            work = f"{shared.GO}; date +%s.%N > ended; printf '%s%s' '{head}' '{tail}'"
            return Call("Bash", {"command": work, "description": "the work", "run_in_background": True})
        if not one.task_id and asked.results:
            one.task_id = "started"
        return "I go on when it is done."

    def is_child(self, one, asked):
        return False


def start(place, folder, prompt, *more):
    log = open(folder / "client.log", "a")
    client = subprocess.Popen(
        ["claude", "-p", *more, "--allowedTools", "Bash,Read"],
        env=place.env, cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
    )
    client.stdin.write(prompt)
    client.stdin.close()
    return client


def run(tools, fault, count):
    script = Script(NAME, fault, count)
    model, place = Model(script), shared.Place(tools)
    clients = []
    try:
        folders = [place.project(script.folder(one)) for one in script.all]
        place.settle(model.url, folders)
        clients = [start(place, folder, shared.DELEGATE) for folder in folders]
        if not shared.wait_until(lambda: all(one.task_id for one in script.all), 120):
            shared.fail(script.all, TimeoutError("some commands were not started"))
        (place.folder / "go").touch()
        if fault != "none":
            time.sleep(shared.WORKS / 3)
            for one, client in zip(script.all, clients):
                one.hit = time.time()
                client.kill()
                client.wait()
            time.sleep(shared.WORKS + 1)
            more = ["--continue"] if fault == shared.CONTINUED else []
            clients = [start(place, folder, shared.HELLO, *more) for folder in folders]
        shared.wait_until(lambda: all(client.poll() is not None for client in clients), shared.LOST)
        for one, folder in zip(script.all, folders):
            if (folder / "ended").exists():
                one.ended = float((folder / "ended").read_text())
    finally:
        for client in clients:
            if client.poll() is None:
                client.kill()
        place.close()
        model.close()
    return script.all
