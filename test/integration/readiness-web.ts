import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NodeRecord } from "../../src/cluster/record.ts";

/** A master's web server; what it answers is the test's. */
export interface ExampleWeb extends AsyncDisposable {
  /** Requests as `METHOD path`, in order. */
  readonly requests: readonly string[];
  /** The node's record with this server as its web server. */
  readonly of: (node: NodeRecord) => NodeRecord;
}

export type Answer = { readonly status: number; readonly body?: unknown };

export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** Answers by path; what isn't among them gets 200. */
export function startWeb(answers: Readonly<Record<string, () => Answer>>, identity: Identity | undefined): ExampleWeb {
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(identity && { tls: { cert: identity.certificate, key: identity.key } }),
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      requests.push(`${request.method} ${pathname}`);
      const answer = answers[pathname]?.() ?? { status: 200, body: "hello" };
      return Response.json(answer.body ?? null, { status: answer.status });
    },
  });
  const port = server.port ?? 0;
  return {
    requests,
    of: (node) => ({ ...node, web: { host: "127.0.0.1", httpPort: port, httpsPort: port } }),
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
}

export interface ExampleAuthority {
  readonly certificate: string;
  /** A server's certificate for an address. */
  issue(address: string): Promise<Identity>;
}

/** A certificate authority made with the openssl program, in `folder`. */
export async function makeAuthority(folder: string): Promise<ExampleAuthority> {
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const path = (name: string): string => join(folder, name);
  const usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"];
  openssl("req", "-x509", ...newKey, "-keyout", path("ca.key"), "-out", path("ca.crt"), "-subj", "/CN=CA", ...usage);
  return {
    certificate: await readFile(path("ca.crt"), "utf8"),
    issue: async (address) => {
      await writeFile(path("names"), `subjectAltName=IP:${address}\n`);
      openssl("req", ...newKey, "-keyout", path("server.key"), "-out", path("server.csr"), "-subj", "/CN=master");
      openssl(
        "x509",
        "-req",
        ...["-in", path("server.csr"), "-out", path("server.crt")],
        ...["-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-CAcreateserial", "-extfile", path("names")],
      );
      return {
        certificate: await readFile(path("server.crt"), "utf8"),
        key: await readFile(path("server.key"), "utf8"),
      };
    },
  };
}

function openssl(...words: readonly string[]): void {
  const { status, stderr } = spawnSync("openssl", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl ${words[0]}: ${stderr}`);
}
