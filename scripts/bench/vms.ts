/** What `cluster-vm create` adds to the time that a QEMU needs which is started by hand with the same words. */
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "./measure.ts";
import { environmentOf, median, time } from "./measure.ts";
import { writeSmallArtifact } from "./small-artifact.ts";
import { findLine, lastOf, spoken } from "./spoken.ts";
import { awaitSsh } from "./ssh-banner.ts";

const root = join(import.meta.dir, "..", "..");
const id = `bench-${process.pid}`;
const bannerLimitMs = 1_200_000;
const diskSize = "4g";
const rounds = 3;
const limit = 1.25;

export async function measureVms(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    const image = (await time([join(root, "test/vm-image/build")])).stdout.trim();
    const artifact = await writeSmallArtifact(folder);
    const [login, byHand]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      const created = await create({ executable, folder, image, artifact });
      login.push(created.login);
      byHand.push(await startByHand(created, image));
    }
    return [row(median(login), median(byHand))];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const row = (seconds: number, reference: number): Row => ({
  what: "vms: a single node until SSH",
  value: `${seconds.toFixed(1)} s`,
  reference: `${reference.toFixed(1)} s (the same QEMU by hand)`,
  ratio: seconds / reference,
  limit,
});

interface Created {
  readonly login: number;
  /** QEMU's command line, for a machine in `copy` of which the seed is there. */
  readonly argv: readonly string[];
  readonly copy: string;
}

async function create(given: {
  readonly executable: string;
  readonly folder: string;
  readonly image: string;
  readonly artifact: string;
}): Promise<Created> {
  const { executable, folder, image, artifact } = given;
  const environment = { XDG_STATE_HOME: join(folder, "state") };
  const machine = ["--memory", "768", "--cpus", "1", "--disk-size", diskSize, "--image", image];
  const counts = ["--agents", "0", "--public-agents", "0"];
  const words = ["create", "-vv", "--variant", "oss", "-c", id, ...machine, ...counts, artifact];
  try {
    const lines = await spoken([executable, ...words], environment);
    const argv = findLine(lines, /^qemu-system-\w+ .* -daemonize$/).split(" ");
    const own = argv[argv.indexOf("-pidfile") + 1]?.replace(/\/qemu\.pid$/, "") ?? "";
    const copy = join(folder, "by-hand");
    await cp(join(own, "seed"), join(copy, "seed"), { recursive: true });
    return {
      login: lastOf(lines, /: \$ .* e2e-first-contact /, 1),
      argv: argv.map((word) => word.replaceAll(own, copy)),
      copy,
    };
  } finally {
    await time([executable, "destroy", "-c", id], environment);
  }
}

/** Its ports are those of the machine before, which is gone. */
async function startByHand({ argv, copy }: Created, image: string): Promise<number> {
  const disk = join(copy, "disk.qcow2");
  const port = Number(/hostfwd=tcp:127\.0\.0\.1:(\d+)-:22/.exec(argv.join(" "))?.[1]);
  await mkdir(copy, { recursive: true });
  const started = performance.now();
  await time(["qemu-img", "create", "-q", "-f", "qcow2", "-b", image, "-F", "qcow2", disk, diskSize.toUpperCase()]);
  const machine = Bun.spawn(
    argv.filter((word) => word !== "-daemonize"),
    { env: environmentOf({}), stdio: ["ignore", "ignore", "inherit"] },
  );
  try {
    await awaitSsh("127.0.0.1", port, bannerLimitMs);
    return (performance.now() - started) / 1000;
  } finally {
    machine.kill("SIGKILL");
    await machine.exited;
    await rm(copy, { recursive: true, force: true });
  }
}
