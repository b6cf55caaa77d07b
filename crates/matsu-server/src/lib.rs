//! Every door into Matsu: HTTP, REST, the socket.
