import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";

/** A master's web server with scripted responses. */
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

/** Responses by path. Other paths get 200. */
export function startWeb(
  answers: Readonly<Record<string, (request: Request) => Answer>>,
  identity: Identity | undefined,
): ExampleWeb {
  const requests: string[] = [];
  const serve = (request: Request): Response => {
    const { pathname } = new URL(request.url);
    requests.push(`${request.method} ${pathname}`);
    const answer = answers[pathname]?.(request) ?? { status: 200, body: "hello" };
    return Response.json(answer.body ?? null, { status: answer.status });
  };
  const server = serveOnLoopback(
    serve,
    identity && { tls: { cert: identity.certificate, key: identity.key } },
  );
  const port = server.port ?? 0;
  return {
    requests,
    of: (node) => ({ ...node, web: { host: "127.0.0.1", httpPort: port, httpsPort: port } }),
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
}

export interface ExampleAuthority {
  readonly certificate: string;
  /** Creates a server certificate for an address. */
  issue(address: string): Promise<Identity>;
}

/** Creates a certificate authority with the openssl program, in `folder`, whose path must not contain spaces. */
export async function makeAuthority(folder: string): Promise<ExampleAuthority> {
  const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
  const usage = "-addext keyUsage=critical,keyCertSign,cRLSign";
  openssl(folder, `req -x509 ${newKey} -keyout ca.key -out ca.crt -subj /CN=CA ${usage}`);
  return {
    certificate: await readFile(join(folder, "ca.crt"), "utf8"),
    issue: async (address) => {
      await writeFile(join(folder, "names"), `subjectAltName=IP:${address}\n`);
      openssl(folder, `req ${newKey} -keyout server.key -out server.csr -subj /CN=master`);
      const signing = "-CA ca.crt -CAkey ca.key -CAcreateserial -extfile names";
      openssl(folder, `x509 -req -in server.csr -out server.crt ${signing}`);
      return {
        certificate: await readFile(join(folder, "server.crt"), "utf8"),
        key: await readFile(join(folder, "server.key"), "utf8"),
      };
    },
  };
}

function openssl(folder: string, words: string): void {
  const { status, stderr } = spawnSync("openssl", words.split(" "), {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`openssl ${words}: ${stderr}`);
}
