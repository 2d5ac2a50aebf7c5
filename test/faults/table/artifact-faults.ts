/** Faults of the artifact: of its file, of its server, and of the files that configure it. */
import { mkdir } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { created, failed } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

/** The creation, with another last word. */
const createFrom = async (
  world: CloudWorld,
  artifact: string,
  ...more: readonly string[]
): Promise<Ended> => world.run([...world.createWords.slice(0, -1), ...more, artifact]);

const file = (name: string, text: string | Uint8Array, expected: Expected): CloudFault => ({
  name: `the artifact ${name}`,
  place: "artifact",
  act: async (world) => {
    await Bun.write(join(world.folder, "other.sh"), text);
    return createFrom(world, "other.sh");
  },
  expected,
});

const named = (name: string, word: string, expected: Expected): CloudFault => ({
  name: `the artifact ${name}`,
  place: "artifact",
  act: async (world) => createFrom(world, word),
  expected: { ...expected, withinMs: 60_000 },
});

const files: readonly CloudFault[] = [
  file("has no bytes", "", failed("artifact-invalid", "other.sh")),
  file(
    "is a web page",
    "<!doctype html><title>Log in</title>",
    failed("artifact-invalid", "web page"),
  ),
  file("is a binary", new Uint8Array(4_096).fill(0x7f), failed("artifact-invalid", "other.sh")),
  file(
    "is of the other variant",
    "#!/bin/bash\n# variant: oss\n",
    failed("variant-mismatch", "oss"),
  ),
  file("is a text", "Not found\n", failed("artifact-invalid", "other.sh")),
  named("is missing", "none.sh", failed("artifact-unreachable", "there is no such folder or file")),
  named(
    "is a folder without a platform",
    "home",
    failed("bad-usage", "platform.yaml: is missing", 2),
  ),
  named("is a device without end", "/dev/zero", failed("artifact-invalid", "/dev/zero")),
  {
    name: "the artifact is a pipe that nobody writes to",
    place: "artifact",
    act: async (world) => {
      await Bun.spawn(["mkfifo", join(world.folder, "pipe")]).exited;
      return createFrom(world, "pipe");
    },
    expected: { ...failed("artifact-invalid", "pipe"), withinMs: 60_000 },
  },
  {
    name: "the artifact has another checksum",
    place: "artifact",
    act: async (world) => createFrom(world, "artifact.sh", "--artifact-sha256", "a".repeat(64)),
    expected: failed("artifact-invalid", "SHA-256"),
  },
];

const artifact = `#!/bin/bash\n# variant: enterprise\n${"# padding\n".repeat(30_000)}`;

type Serve = (request: Request, count: number) => Response | Promise<Response>;

/** A creation from a URL with a secret in it. */
const server = (name: string, serve: Serve, expected: Expected, seconds = 6): CloudFault => ({
  name: `the artifact's server ${name}`,
  place: "artifact",
  seconds,
  act: async (world) => {
    const seen = { count: 0 };
    using listening = serveOnLoopback((request) => {
      seen.count += 1;
      return serve(request, seen.count);
    });
    return await createFrom(
      world,
      `http://me:${world.urlSecret}@127.0.0.1:${listening.port}/artifact.sh?token=${world.urlSecret}`,
    );
  },
  expected,
});

const whole = (request: Request): Response => {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "") ?? [];
  if (first === undefined) return new Response(artifact);
  const end =
    last === "" || last === undefined
      ? artifact.length
      : Math.min(Number(last) + 1, artifact.length);
  const headers = { "content-range": `bytes ${first}-${end - 1}/${artifact.length}` };
  return new Response(artifact.slice(Number(first), end), { status: 206, headers });
};

const broken = (text: string): Response =>
  new Response(
    new ReadableStream({
      start: async (controller) => {
        controller.enqueue(text);
        await Bun.sleep(50);
        controller.error();
      },
    }),
    { headers: { "content-length": String(artifact.length) } },
  );

const servers: readonly CloudFault[] = [
  server("works", whole, created),
  server(
    "says 404",
    () => new Response("gone", { status: 404 }),
    failed("artifact-unreachable", "404"),
  ),
  server(
    "says 403",
    () => new Response("no", { status: 403 }),
    failed("artifact-unreachable", "403"),
  ),
  server(
    "says 401",
    () => new Response("who?", { status: 401 }),
    failed("artifact-unreachable", "401"),
  ),
  server(
    "says 500",
    () => new Response("oh", { status: 500 }),
    failed("artifact-unreachable", "500"),
    20,
  ),
  server(
    "says 503 once",
    (request, count) => (count === 1 ? new Response("", { status: 503 }) : whole(request)),
    created,
  ),
  server(
    "answers with a login page",
    () => new Response("<!doctype html><title>Log in</title>"),
    failed("artifact-invalid", "web page"),
  ),
  server("answers with nothing", () => new Response(""), failed("artifact-invalid", "artifact.sh")),
  server(
    "redirects in a circle",
    () => new Response("", { status: 302, headers: { location: "/artifact.sh" } }),
    failed("artifact-unreachable", /redirect/i),
    20,
  ),
  server(
    "redirects to nowhere",
    () => new Response("", { status: 302, headers: { location: "http://127.0.0.1:9/" } }),
    failed("artifact-unreachable", "artifact.sh"),
    20,
  ),
  server("knows no ranges", () => new Response(artifact), created),
  server(
    "breaks off once",
    (request, count) => (count === 2 ? broken(artifact.slice(0, 9_000)) : whole(request)),
    created,
    12,
  ),
  server(
    "breaks off always",
    (_, count) => (count === 1 ? new Response(artifact) : broken(artifact.slice(0, 9_000))),
    failed("artifact-unreachable", "artifact.sh"),
    60,
  ),
  server(
    "has another artifact the second time",
    (request, count) =>
      count === 1 ? whole(request) : new Response("<!doctype html><title>Log in</title>"),
    failed("artifact-invalid", "artifact.sh"),
  ),
];

const sockets: readonly CloudFault[] = [
  ["cuts each connection", (socket: Socket) => void socket.destroy()],
  ["speaks another protocol", (socket: Socket) => void socket.end("SSH-2.0-OpenSSH_9.2\r\n")],
].map(([name, serve]): CloudFault => ({
  name: `the artifact's server ${String(name)}`,
  place: "artifact",
  seconds: 15,
  act: async (world) => {
    const listening = createServer((socket) => {
      socket.on("error", () => {});
      (serve as (socket: Socket) => void)(socket);
    });
    await new Promise<void>((resolve) => {
      listening.listen(0, "127.0.0.1", resolve);
    });
    const { port } = listening.address() as { readonly port: number };
    try {
      return await createFrom(world, `http://127.0.0.1:${port}/artifact.sh`);
    } finally {
      // An open server would keep the runner of the faults alive.
      listening.close();
    }
  },
  expected: failed("artifact-unreachable", "artifact.sh"),
}));

const addresses: readonly CloudFault[] = [
  named(
    "is at a closed port",
    "http://127.0.0.1:9/artifact.sh",
    failed("artifact-unreachable", "127.0.0.1:9"),
  ),
  named(
    "is at an unknown name",
    "https://downloads.invalid/artifact.sh",
    failed("artifact-unreachable", "downloads.invalid"),
  ),
  named("has no address", "http://", failed("bad-usage", "PLATFORM", 2)),
  named(
    "has an address of another kind",
    "ftp://downloads.invalid/artifact.sh",
    failed("bad-usage", "PLATFORM", 2),
  ),
];

const withFile =
  (name: string, text: string) =>
  async (world: CloudWorld): Promise<Struck> => {
    const path = join(world.folder, name);
    const former = await Bun.file(path).text();
    await Bun.write(path, text);
    return {
      hasStruck: () => true,
      [Symbol.asyncDispose]: async () => void (await Bun.write(path, former)),
    };
  };

const configuration: readonly CloudFault[] = [
  {
    name: "--extra-config is no YAML",
    place: "artifact",
    strike: withFile("extra.yaml", "a: [b\n"),
    expected: failed("bad-usage", "extra.yaml", 2),
  },
  {
    name: "--extra-config is a list",
    place: "artifact",
    strike: withFile("extra.yaml", "- a\n"),
    expected: failed("bad-usage", "extra.yaml", 2),
  },
  {
    name: "--extra-config has no bytes",
    place: "artifact",
    strike: withFile("extra.yaml", ""),
    expected: created,
  },
  {
    name: "the license key has no bytes",
    place: "artifact",
    strike: withFile("license.txt", ""),
    expected: failed("bad-usage", "license.txt", 2),
  },
  {
    name: "--genconf-dir holds a config.yaml",
    place: "artifact",
    act: async (world) => {
      await mkdir(join(world.folder, "genconf"));
      await Bun.write(join(world.folder, "genconf/config.yaml"), "a: b\n");
      return createFrom(world, "artifact.sh", "--genconf-dir", "genconf");
    },
    expected: failed("bad-usage", "config.yaml", 2),
  },
];

export const artifactFaults: readonly CloudFault[] = [
  ...files,
  ...servers,
  ...sockets,
  ...addresses,
  ...configuration,
];
