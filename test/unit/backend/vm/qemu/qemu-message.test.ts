import { expect, test } from "bun:test";
import { type Failure } from "../../../../../src/backend/vm/machines/machine-life.ts";
import { qemuMessage } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { observed } from "../machine-cluster.ts";

test("why QEMU stopped a machine is told in its own words", () => {
  const failed = (failure: Failure["failure"], said?: string) =>
    observed([{ failure, said }, "running"]).nodes[0];
  expect(
    failed("internal-error", "KVM internal error. Suberror: 1; emulation failure"),
  ).toMatchObject({
    state: "ended",
    stateReason:
      "QEMU stopped it with an internal error (KVM internal error. Suberror: 1; emulation failure)",
  });
  expect(failed("internal-error")).toMatchObject({
    stateReason: "QEMU stopped it with an internal error",
  });
  expect(failed("io-error", "full")).toMatchObject({
    stateReason: "QEMU stopped it because of a disk error (full)",
  });
  expect(failed("guest-panicked")).toMatchObject({ stateReason: "its kernel panicked" });
  expect(failed("crashed", "out of handles")).toMatchObject({
    stateReason: "its QEMU crashed (out of handles)",
  });
});

test("of what QEMU wrote, the lines that say what is wrong are kept", () => {
  const written = `qemu-system-x86_64: warning: never mind
qemu-system-x86_64: -mon chardev=monitor,mode=control: warning: '-mon' is deprecated
KVM internal error. Suberror: 1
extra data[0]: 0x0000000000000001
emulation failure
EAX=0000001f EBX=00000003
ES =0028 00000000 ffffffff 00c09300 DPL=0 DS   [-WA]
Code=eb de ff <cf> c3
qemu-system-x86_64: terminating on signal 15 from pid 7 (kill)
`;
  expect(unmarked(qemuMessage(written, 5)!)).toBe(
    "KVM internal error. Suberror: 1; emulation failure",
  );
  expect(unmarked(qemuMessage(written, 1)!)).toBe("KVM internal error. Suberror: 1");
  expect(qemuMessage("qemu-system-x86_64: warning: never mind\n", 5)).toBeUndefined();
  expect(
    unmarked(
      qemuMessage("qemu-system-x86_64: -accel kvm: failed to initialize kvm: No such file\n", 1)!,
    ),
  ).toBe("failed to initialize kvm: No such file");
});
