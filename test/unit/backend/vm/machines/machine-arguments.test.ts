import { expect, test } from "bun:test";
import { privateAddress } from "../../../../../src/backend/vm/machines/private-network.ts";
import { machineArguments } from "../../../../../src/backend/vm/machines/machine-arguments.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";

test.each([true, false])(
  "a machine that is offline is reached here and reaches nothing outside, whether this computer has IPv6: %p",
  (hasIpv6) => {
    const node = { id: "vm-0123abcd-0", role: "master", index: 0, privateAddress: privateAddress(0) } as const;
    const wordsOf = (isOffline?: boolean) =>
      machineArguments({
        architecture: architectureOf("x64"),
        accelerator: "tcg",
        isSandboxed: true,
        options: { memoryMegabytes: 768, cpus: 1, isOffline },
        files: machineFiles("/state/vm/a-c1", node),
        node: { ...node, ports: { ssh: 4000, http: 5000, https: 6000 } },
        place: 0,
        sockets: { folder: "/tmp/a", count: 2 },
        isOfTemplate: false,
        hasIpv6,
      }).join(" ");
    expect(wordsOf(true)).toContain("user,id=outside,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:4000-:22,");
    expect(wordsOf(true)).toContain("stream,id=inside");
    for (const usual of [wordsOf(), wordsOf(false)]) expect(usual).not.toContain("restrict");
  },
);
