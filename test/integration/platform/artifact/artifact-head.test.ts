import { expect, test } from "bun:test";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ClusterError } from "../../../../src/errors.ts";
import { readArtifactHead } from "../../../../src/platform/artifact/artifact-head.ts";
import { parseArtifactLocation } from "../../../../src/platform/artifact/artifact-request.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import { artifactBytes, rangeAnswer, rawServer, webServer } from "./artifact-server.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const signal = neverAborted;
const secret = "hunter2-token";

/** A clock on which pauses take no time. */
const quickClock = { now: () => systemClock.now(), sleep: async () => {} };

async function read(text: string, limitMs = 15_000) {
  const location = parseArtifactLocation(text, "/").value!;
  const { layout, variant, sizeBytes } = await readArtifactHead(
    location,
    { clock: quickClock, limitMs },
    signal,
  );
  return { layout: layout?.name, variant, sizeBytes };
}

async function failure(text: string, limitMs?: number): Promise<ClusterError> {
  const error: unknown = await read(text, limitMs).then(
    () => new Error("it was read"),
    (thrown: unknown) => thrown,
  );
  // Nothing printable of any failure reveals the secret.
  expect(Bun.inspect(error, { depth: 10 })).not.toContain(secret);
  return error as ClusterError;
}

test("only 16 KiB are requested from a server that supports ranges", async () => {
  const bytes = artifactBytes(1_000_000);
  await using server = webServer((request) => rangeAnswer(request, bytes, {}));
  expect(await read(`${server.origin}/a.sh?token=${secret}`)).toEqual({
    variant: "oss",
    layout: "cluster",
    sizeBytes: 1_000_000,
  });
  expect(server.requests.map((request) => request.headers.get("range"))).toEqual(["bytes=0-16383"]);
});

test("from a server that encodes what it sends, the beginning is read, and the size stays unknown", async () => {
  const bytes = Buffer.from(Bun.gzipSync(artifactBytes(1_000_000)));
  await using server = webServer((request) =>
    rangeAnswer(request, bytes, { "content-encoding": "gzip" }),
  );
  expect(await read(server.origin)).toEqual({
    variant: "oss",
    layout: "cluster",
    sizeBytes: undefined,
  });
});

test("only the beginning is read from a server without ranges", async () => {
  const transfer = { hasEnded: false };
  const chunk = artifactBytes(65_536, "#!/bin/bash\n# variant: ee\n");
  await using server = webServer(() => {
    const body = new ReadableStream({
      pull: async (controller) => {
        await new Promise(setImmediate);
        controller.enqueue(chunk);
      },
      cancel: () => {
        transfer.hasEnded = true;
      },
    });
    return new Response(body);
  });
  expect(await read(`${server.origin}/a.sh`)).toEqual({
    variant: "enterprise",
    layout: "dcos",
    sizeBytes: undefined,
  });
  await until("the end of the transfer", () => transfer.hasEnded);
});

test("an artifact shorter than 16 KiB is read completely", async () => {
  const bytes = artifactBytes(100, "#!/bin/bash\n# variant: enterprise\n");
  await using server = webServer((request) => rangeAnswer(request, bytes, {}));
  expect(await read(server.origin)).toEqual({
    variant: "enterprise",
    layout: "cluster",
    sizeBytes: 100,
  });
});

test.each([301, 302, 303, 307, 308])(
  "a redirect with %d is followed, without the URL's credentials if it leads to another server",
  async (status) => {
    await using target = webServer((request) => rangeAnswer(request, artifactBytes(5000), {}));
    await using server = webServer((request) =>
      request.url.endsWith("/first")
        ? new Response(null, { status, headers: { location: "/second" } })
        : new Response(null, {
            status,
            headers: { location: `${target.origin}/a?signature=${secret}` },
          }),
    );
    const { variant } = await read(`${server.origin.replace("//", `//me:${secret}@`)}/first`);
    expect(variant).toBe("oss");
    const authorization = `Basic ${btoa(`me:${secret}`)}`;
    expect(server.requests.map((request) => request.headers.get("authorization"))).toEqual([
      authorization,
      authorization,
    ]);
    expect(target.requests.map((request) => request.headers.get("authorization"))).toEqual([null]);
  },
);

test("a loop of redirects ends", async () => {
  await using server = webServer(
    () => new Response(null, { status: 302, headers: { location: `/?${secret}` } }),
  );
  const error = await failure(`${server.origin}/a?${secret}`);
  expect(error).toMatchObject({
    id: "artifact-unreachable",
    facts: { artifact: `${server.origin}/a?***` },
  });
  expect(error.message).toContain("more than 10");
  expect(error.message).not.toContain(secret);
});

test.each([
  ["ftp://me:hunter2-token@host.example/a", "ftp://***@host.example/a"],
  ["https://[bad/?hunter2-token", "https://[bad/?***"],
  ["http://me:hunter2-token@192.0.2.7/a", "this computer to the insecure http://***@192.0.2.7/a"],
])("a redirect to %s is rejected", async (location, shown) => {
  await using server = webServer(() => new Response(null, { status: 302, headers: { location } }));
  const error = await failure(server.origin);
  expect(error).toMatchObject({
    id: "artifact-unreachable",
    facts: { artifact: `${server.origin}/` },
  });
  expect(error.message).toContain(shown);
  expect(error.message).not.toContain("hunter2");
});

test.each([
  [401, 1],
  [403, 1],
  [404, 1],
  [410, 1],
  [400, 1],
  [408, 4],
  [425, 4],
  [429, 4],
  [503, 4],
])("a response %d is an error after %d requests", async (status, asked) => {
  await using server = webServer(() => new Response(`<p>${secret}</p>`, { status }));
  const error = await failure(`${server.origin}/a.sh?X-Signature=${secret}`);
  expect(error.id).toBe("artifact-unreachable");
  expect(error.message).not.toContain(secret);
  expect(error.facts).toEqual({ artifact: `${server.origin}/a.sh?***`, status });
  expect(server.requests.length).toBe(asked);
});

test("a transient failure is retried silently", async () => {
  await using server = webServer((request, count) =>
    count < 3
      ? new Response("busy", { status: 503 })
      : rangeAnswer(request, artifactBytes(5000), {}),
  );
  expect((await read(server.origin)).variant).toBe("oss");
});

test("a web page instead of the artifact is reported as such", async () => {
  await using server = webServer(
    () =>
      new Response("<!DOCTYPE html><title>Sign in</title>", {
        headers: { "content-type": "text/html" },
      }),
  );
  const error = await failure(`${server.origin}/login?next=${secret}`);
  expect(error).toMatchObject({
    id: "artifact-invalid",
    facts: { artifact: `${server.origin}/login?***` },
  });
  expect(error.message).toContain("web page");
  expect(error.message).not.toContain(secret);
});

test.each([200, 416])("an empty file isn't an artifact (HTTP %d)", async (status) => {
  const page = status === 200 ? null : "<html><h1>416 Range Not Satisfiable</h1></html>";
  await using server = webServer(() => new Response(page, { status }));
  const empty = { id: "artifact-invalid", message: expect.stringContaining("empty") };
  expect(await failure(server.origin)).toMatchObject(empty);
});

test("a server that never answers is given up at the time limit", async () => {
  await using server = webServer(() => new Promise<Response>(() => {}));
  const error = await failure(`${server.origin}/a?${secret}`, 200);
  expect(error).toMatchObject({
    id: "artifact-unreachable",
    facts: { artifact: `${server.origin}/a?***` },
  });
  expect(error.message).toContain("0.2 s");
  expect(error.message).not.toContain(secret);
  expect(error.transient).toBe(true);
});

test("a body that stalls is given up at the time limit", async () => {
  await using server = webServer(
    () =>
      new Response(
        new ReadableStream({
          pull: async (controller) => {
            controller.enqueue(artifactBytes(100));
            await new Promise(() => {});
          },
        }),
      ),
  );
  const late = {
    id: "artifact-unreachable",
    transient: true,
    message: expect.stringContaining("0.2 s"),
  };
  expect(await failure(server.origin, 200)).toMatchObject(late);
});

test("an abort ends it at once with the abort's reason", async () => {
  const abort = new AbortController();
  await using server = webServer(() => {
    abort.abort(new Error("interrupted"));
    return new Promise<Response>(() => {});
  });
  const reading = readArtifactHead(
    parseArtifactLocation(server.origin, "/").value!,
    { clock: quickClock, limitMs: 15_000 },
    abort.signal,
  );
  expect(await reading.catch(String)).toBe("Error: interrupted");
});

test("an untrusted certificate is rejected", async () => {
  await using folder = await scratchFolder();
  await using server = webServer(() => new Response("x"), await selfSigned(folder.path));
  const error = await failure(`${server.origin}/a?${secret}`);
  const facts = { artifact: `${server.origin}/a?***`, code: "DEPTH_ZERO_SELF_SIGNED_CERT" };
  expect(error).toMatchObject({ id: "artifact-unreachable", facts });
  expect(error.message).not.toContain(secret);
  expect(error.hint).toContain("NODE_EXTRA_CA_CERTS");
  expect(server.requests).toEqual([]);
});

test("NODE_EXTRA_CA_CERTS adds trust, and a redirect from https to http is rejected", async () => {
  await using folder = await scratchFolder();
  await using plain = webServer(() => new Response(artifactBytes(5000)));
  const tls = await selfSigned(folder.path);
  await using server = webServer((request) => {
    const location = `${plain.origin}/a?${secret}`;
    return request.url.endsWith("/leads-out")
      ? new Response(null, { status: 302, headers: { location } })
      : new Response(artifactBytes(5000));
  }, tls);
  const child = async (path: string): Promise<string> => {
    const environment = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder.path, "cert.pem") };
    return (
      await Bun.$`${process.execPath} -e ${readInChild} ${server.origin}${path}`
        .env(environment)
        .text()
    ).trim();
  };
  expect(JSON.parse(await child("/a"))).toMatchObject({ variant: "oss" });
  expect(await child("/leads-out")).toBe(
    `Cannot read the artifact ${server.origin}/leads-out: the server redirects from https to the insecure ${plain.origin}/a?***.`,
  );
  expect(plain.requests).toEqual([]);
});

/** Uses a child process, because the runtime reads NODE_EXTRA_CA_CERTS only when it starts. */
const readInChild = `
  const { readArtifactHead } = await import("${import.meta.dir}/../../../../src/platform/artifact/artifact-head.ts");
  const { systemClock } = await import("${import.meta.dir}/../../../../src/system/runtime.ts");
  const url = process.argv.at(-1);
  const location = { kind: "url", url, shown: url };
  const reading = readArtifactHead(location, { clock: systemClock, limitMs: 15_000 }, new AbortController().signal);
  console.log(await reading.then(JSON.stringify, (error) => error.message));
`;

async function selfSigned(folder: string): Promise<Bun.TLSOptions> {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  await Bun.$`openssl req -x509 ${kind} -nodes -keyout ${key} -out ${cert} -days 2 ${subject}`.quiet();
  return { key: Bun.file(key), cert: Bun.file(cert) };
}

test("https to a server without TLS is an error that says so", async () => {
  await using server = webServer(() => new Response("x"));
  const error = await failure(`${server.origin.replace("http:", "https:")}/a?${secret}`);
  expect(error).toMatchObject({ id: "artifact-unreachable", facts: { code: "EPROTO" } });
  expect(error.message).toContain("TLS");
});

test.each([
  [
    "http://127.0.0.1:1/a?hunter2-token",
    "http://127.0.0.1:1/a?***: the connection was refused (ECONNREFUSED).",
  ],
  [
    "https://me:hunter2-token@no-such-host.invalid/",
    "https://***@no-such-host.invalid/: the host name is unknown (ENOTFOUND).",
  ],
])("the unreachable URL %s is reported with the reason", async (url, message) => {
  const error = await failure(url);
  expect([error.id, error.message]).toEqual([
    "artifact-unreachable",
    `Cannot read the artifact ${message}`,
  ]);
});

test.each([
  ["", "the connection was lost (ECONNRESET)."],
  ["hello, I speak no HTTP\r\n\r\n", "the server does not speak HTTP (Malformed_HTTP_Response)."],
])("a server that answers %j isn't a web server", async (answer, reason) => {
  await using server = await rawServer(() => answer);
  const error = await failure(`${server.origin}/?${secret}`);
  expect(error.message).toEndWith(`: ${reason}`);
  expect(server.requests.length).toBe(4);
});

test("a local artifact is read in place", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "my artifact.sh");
  await Bun.write(path, artifactBytes(9000));
  expect(await read(path)).toEqual({ variant: "oss", layout: "cluster", sizeBytes: 9000 });
  expect(await read(Bun.pathToFileURL(path).href)).toEqual({
    variant: "oss",
    layout: "cluster",
    sizeBytes: 9000,
  });
});

test("missing files, folders and files that aren't scripts are different errors", async () => {
  await using folder = await scratchFolder();
  const { path } = folder;
  await mkdir(join(path, "folder"));
  await Bun.write(join(path, "text"), "hello");
  await chmod(join(path, "text"), 0o644);
  const failures = await Promise.all(
    ["missing", "folder", "text", "text/below"].map((name) => failure(join(path, name))),
  );
  expect(failures.map(({ id, message }) => `${id}: ${message.replaceAll(path, "/p")}`))
    .toMatchInlineSnapshot(`
    [
      "artifact-unreachable: Cannot read /p/missing: there is no such folder or file.",
      "artifact-invalid: /p/folder is not a release artifact: it is a folder.",
      "artifact-invalid: /p/text is not a release artifact: it does not begin like a script (#!).",
      "artifact-unreachable: Cannot read /p/text/below: there is no such folder or file.",
    ]
  `);
});

test("a pipe is rejected at once, even if nothing writes to it", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "pipe");
  await Bun.$`mkfifo ${path}`;
  expect(await failure(path)).toMatchObject({
    id: "artifact-invalid",
    facts: { artifact: path },
    message: expect.stringContaining("not a file"),
  });
});
