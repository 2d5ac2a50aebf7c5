import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Variant } from "../../../../src/model/cluster-record.ts";
import {
  type SyncTarget,
  syncCheckoutToNode,
} from "../../../../src/platform/checkout/checkout-sync.ts";
import { readCheckout } from "../../../../src/platform/checkout/checkout.ts";
import { clusterLayout } from "../../../../src/platform/layouts/cluster.ts";
import type { Layout } from "../../../../src/platform/layouts/layout.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { createFileSums } from "../../../../src/system/files/listed-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();

/** A master that is a folder of this machine, and a checkout. */
export interface CheckoutBench extends AsyncDisposable {
  readonly checkout: string;
  readonly tests: string;
  readonly library: string;
  readonly layout: Layout;
  readonly variant: Variant;
  readonly write: (path: string, text: string, mode?: number) => Promise<void>;
  readonly tree: (folder: string) => Promise<readonly string[]>;
}

export async function checkoutBench(variant: Variant): Promise<CheckoutBench> {
  const folder = await scratchFolder();
  const root = folder.path;
  const layout: Layout = {
    ...clusterLayout,
    versionFile: join(root, "opt/etc/version.json"),
    installedMarker: join(root, "opt"),
    testsFolders: [join(root, "opt/active/integration-test")],
    release: {
      ...clusterLayout.release!,
      bootstrapLibraryFolder: join(root, "opt/active/bootstrap/lib"),
    },
  };
  const write: CheckoutBench["write"] = async (path, text, mode = 0o644) => {
    await Bun.write(join(root, path), text);
    await chmod(join(root, path), mode);
  };
  await write("opt/etc/version.json", JSON.stringify({ variant, version: "1.0" }));
  // As on a real node, the tests folder is a link to a package's folder.
  await write("opt/packages/tests--1/test_old.py", "old");
  await write("opt/packages/tests--1/data/kept.txt", "kept");
  await mkdir(join(root, "opt/active"), { recursive: true });
  await symlink("../packages/tests--1", layout.testsFolders[0]);
  await write(
    "opt/active/bootstrap/lib/python3.9/site-packages/cluster_internal_utils/kept.py",
    "kept",
  );
  await write("checkout/packages/integration-test/extra/test_new.py", "new");
  return {
    checkout: join(root, "checkout"),
    tests: join(root, "opt/packages/tests--1"),
    library: join(
      layout.release!.bootstrapLibraryFolder,
      "python3.9/site-packages/cluster_internal_utils",
    ),
    layout,
    variant,
    write,
    tree: async (path) =>
      (await Bun.$`cd ${path} && find . ! -type d | LC_ALL=C sort`.text()).trim().split("\n"),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** Runs commands in this machine's shell. Can close their stdin after some bytes, like a lost connection. */
export const localConnection = (cutAfterBytes = Infinity): Connection => ({
  isOpen: true,
  run: async (command) => {
    const child = Bun.spawn([...command.argv], { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
    await feed(child.stdin, command.stdin, cutAfterBytes);
    const [stdout, stderr, status] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { status, stdout, stderr };
  },
  upload: () => Promise.reject(new Error("not used")),
  openPort: async () => Promise.reject(new Error("there is none")),
  [Symbol.asyncDispose]: async () => {},
});

async function feed(
  sink: Bun.FileSink,
  stdin: RemoteCommand["stdin"],
  cutAfterBytes: number,
): Promise<void> {
  if (typeof stdin === "string") await sink.write(stdin);
  if (typeof stdin === "object" && Symbol.asyncIterator in stdin) {
    let sent = 0;
    for await (const chunk of stdin) {
      const part = chunk.subarray(0, cutAfterBytes - sent);
      sent += part.length;
      await sink.write(part);
      if (part.length < chunk.length) break;
    }
  }
  await sink.end();
}

export async function sync(
  place: CheckoutBench,
  connection = localConnection(),
  more: Partial<SyncTarget> = {},
) {
  const checkout = (await readCheckout(place.checkout, signal)).value!;
  const { layout, variant } = place;
  const target = {
    connection,
    reference: "master_0",
    layouts: [layout],
    variant,
    checksum: false,
    ...more,
  };
  return syncCheckoutToNode(checkout, { sumOf: createFileSums(), ...target }, signal);
}

/** The folder of the tests in the checkout. */
export const extra = "checkout/packages/integration-test/extra";
