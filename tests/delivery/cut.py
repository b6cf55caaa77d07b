"""A way to the daemon that can be cut: a proxy of TCP connections on loopback."""

import socket
import threading


class Cable:
    def __init__(self, port):
        self.port = port
        self.is_cut = False
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pipe, args=(one, other), daemon=True).start()

    def _pipe(self, source, target):
        try:
            while part := source.recv(65536):
                target.sendall(part)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends every connection. How many there were."""
        self.is_cut = True
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        return len(pairs)

    def mend(self):
        self.is_cut = False

    def close(self):
        self.cut()
        self.listener.close()
