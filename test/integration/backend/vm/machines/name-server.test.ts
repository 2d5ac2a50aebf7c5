/**
 * How nodes get names on a computer whose only name server has an IPv6 address: QEMU's real network between two namespaces, the computer and the node.
 */
import { join } from "node:path";
import { expect, test } from "bun:test";
import nameServer from "../../../../../src/backend/vm/machines/name-server.sh" with { type: "text" };
import { shellText } from "../../../../../src/ssh/shell-text.ts";
import { machineWords } from "../../../../support/machine-words.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const qemu = "qemu-system-x86_64";
const programs = [qemu, "unshare", "ip", "python3", "getent"];
const missing = programs.filter((name) => Bun.which(name) === null);
const canSeparate =
  missing.length === 0 &&
  Bun.spawnSync(["unshare", "-nm", "sh", "-c", "ip tuntap add name eth0 mode tap"]).success;
const lack = canSeparate ? "here" : `no ${missing.join(", ") || "network namespaces"} here`;

/** Answers each question for an IPv4 address with 127.0.0.99, at ::1. */
const server = `
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::1", 53))
print("listens", flush=True)
while True:
    d, a = s.recvfrom(1500)
    i = 12
    while d[i]: i += d[i] + 1
    known = d[i + 1:i + 3] == b"\\0\\1"
    answer = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\x7f\\0\\0\\x63" if known else b""
    s.sendto(d[:2] + b"\\x81\\x80\\0\\1" + (b"\\0\\1" if known else b"\\0\\0") + b"\\0\\0\\0\\0" + d[12:i + 5] + answer, a)
`;

/** The node's network card: passes frames between its kernel and QEMU, before which each frame's length stands. */
const card = `
import fcntl, os, socket, struct, threading
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"eth0", 0x1002))
qemu = socket.socket(socket.AF_UNIX)
qemu.connect("card")
def out():
    while True:
        frame = os.read(tap, 65536)
        qemu.sendall(struct.pack("!I", len(frame)) + frame)
threading.Thread(target=out, daemon=True).start()
frames = qemu.makefile("rb")
while True:
    head = frames.read(4)
    if len(head) < 4: break
    os.write(tap, frames.read(struct.unpack("!I", head)[0]))
`;

const computer = `
set -e
ip link set lo up
echo 'nameserver ::1' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
python3 -c "$SERVER" >server.log &
children=$!
trap 'kill $children; wait' EXIT
until grep -q listens server.log; do sleep 0.05; done
${qemu} -nodefaults -display none -machine none -netdev "$NETWORK" -netdev hubport,id=a,hubid=0,netdev=outside \
  -netdev stream,id=card,server=on,addr.type=unix,addr.path=card -netdev hubport,id=b,hubid=0,netdev=card &
children="$children $!"
until [ -e card ]; do sleep 0.05; done
unshare -nm sh ./node
`;

const node = `
ip link set lo up
python3 -c "$CARD" &
card=$!
until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
echo 'nameserver 10.0.2.3' >node-resolv.conf
mount --bind node-resolv.conf /etc/resolv.conf
systemctl() { return 3; }
for boot in 1 2; do
  eval "$NAME_SERVER"
done
getent ahostsv4 example.test | head -n 1
grep -c fec0::3 /etc/resolv.conf
until ip -6 route show default | grep -q fe80::2; do sleep 0.1; done
ip -6 route get 2001:db8::1 >/dev/null 2>&1 || echo unreachable
kill $card
`;

test.skipIf(!canSeparate)(
  `names are found through fec0::3, and an IPv6 address outside is refused at once (${lack})`,
  async () => {
    await using folder = await scratchFolder();
    await Bun.write(join(folder.path, "node"), node);
    const words = machineWords({ hasIpv6: true, ports: { ssh: 0, http: 0, https: 0 } });
    const run = Bun.spawn(["unshare", "-nm", "sh", "-c", computer], {
      cwd: folder.path,
      env: {
        PATH: process.env["PATH"],
        SERVER: server,
        CARD: card,
        NETWORK: words.find((word) => word.startsWith("user,id=outside")),
        NAME_SERVER: shellText(nameServer, { HAS_ROUTE: "no" }),
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [address, servers, route] = (await new Response(run.stdout).text()).split("\n");
    expect(address).toMatch(/^127\.0\.0\.99 /);
    expect([servers, route]).toEqual(["1", "unreachable"]);
    expect(await run.exited).toBe(0);
  },
);
