"""What of systemd a unit of Type=notify with sockets meets: a datagram socket for its words, and listening sockets that
outlive it. Argument: JSON. Standard input: `start`, `signal NAME`; standard output: one JSON value a line."""

import json
import os
import selectors
import signal
import socket
import sys
import threading

spec = json.loads(sys.argv[1])
lock = threading.Lock()


def tell(**words):
    with lock:
        print(json.dumps(words), flush=True)


def make_listener(given):
    if given.get("kind") == "unix":
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(given["path"])
    else:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.bind(("127.0.0.1", 0))
    made.listen(512)
    return made


listeners = [make_listener(given) for given in spec["sockets"]]
words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
words.bind(spec["notify"])
tell(event="sockets", ports=[s.getsockname()[1] if s.family == socket.AF_INET else 0 for s in listeners])

child = 0


def become(first):
    """In the child: the sockets from descriptor 3 on, and the variables of sd_listen_fds(3)."""
    moved = [os.dup2(s.fileno(), 200 + i) for i, s in enumerate(listeners)]
    for i, fd in enumerate(moved):
        os.dup2(fd, 3 + i, inheritable=True)
    os.closerange(3 + len(moved), 300)
    env = dict(spec["env"], NOTIFY_SOCKET=spec["notify"])
    if listeners:
        env["LISTEN_PID"] = str(first or os.getpid())
        env["LISTEN_FDS"] = str(len(listeners))
        env["LISTEN_FDNAMES"] = ":".join(s["name"] for s in spec["sockets"])
    if spec.get("watchdogUsec"):
        env["WATCHDOG_USEC"] = str(spec["watchdogUsec"])
        env["WATCHDOG_PID"] = str(os.getpid())
    os.dup2(os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.dup2(2, 1)
    os.execve(spec["command"][0], spec["command"], env)


def start():
    global child
    child = os.fork()
    if child == 0:
        try:
            become(spec.get("listenPid"))
        finally:
            os._exit(127)
    pid = child

    def reap():
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        tell(event="exit", code=code)

    threading.Thread(target=reap, daemon=True).start()


def hear():
    text, descriptors, _, _ = socket.recv_fds(words, 4096, 16)
    # BARRIER=1: the sender waits until this is closed (sd_notify_barrier(3)).
    for descriptor in descriptors:
        os.close(descriptor)
    if text != b"BARRIER=1":
        tell(event="notify", text=text.decode())


selector = selectors.DefaultSelector()
selector.register(words, selectors.EVENT_READ, hear)
selector.register(sys.stdin, selectors.EVENT_READ, None)
while True:
    for key, _ in selector.select():
        if key.data:
            key.data()
            continue
        command = os.read(0, 4096).decode()
        if not command:
            if child:
                try:
                    os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            sys.exit(0)
        for line in command.split("\n"):
            if line == "start":
                start()
            elif line.startswith("signal "):
                os.kill(child, getattr(signal, line.split(" ")[1]))
