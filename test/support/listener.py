"""
Run in a network namespace: listens on ports of both families and tells every caller a name and where the connection was
meant to go (SO_ORIGINAL_DST), as a proxy learns it. Node has no getsockopt. Arguments: PORT=NAME…
"""
import selectors
import socket
import struct
import sys

SO_ORIGINAL_DST = 80
# Level of the option, length of the address and where in it the IP address is.
OPTIONS = {
    socket.AF_INET: (socket.SOL_IP, 16, slice(4, 8)),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 28, slice(8, 24)),
}


def original_destination(connection):
    level, length, part = OPTIONS[connection.family]
    try:
        address = connection.getsockopt(level, SO_ORIGINAL_DST, length)
    except OSError:
        return "none"
    host = socket.inet_ntop(connection.family, address[part])
    (port,) = struct.unpack_from("!H", address, 2)
    return f"[{host}]:{port}" if connection.family == socket.AF_INET6 else f"{host}:{port}"


ready = selectors.DefaultSelector()
for pair in sys.argv[1:]:
    port, name = pair.split("=")
    for family in OPTIONS:
        ready.register(socket.create_server(("", int(port)), family=family), selectors.EVENT_READ, name)
print("listening", flush=True)
while True:
    for key, _ in ready.select():
        connection, _ = key.fileobj.accept()
        with connection:
            connection.sendall(f"{key.data} {original_destination(connection)}".encode())
