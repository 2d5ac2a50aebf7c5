/** A company's own certificate authorities, created with openssl as its documentation describes. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

export interface Authority {
  /** Holds `custom_ca.crt`, `custom_ca.key` and `custom_ca_chain.crt`, and nothing else. */
  readonly folder: string;
  readonly keyPath: string;
  /** The self-signed certificate that clients trust, and its key; they stand outside the folder. */
  readonly rootPath: string;
  readonly rootKeyPath: string;
}

/** Makes `folder` with an intermediate authority in it, whose chain leads to a root made for it alone. */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  await mkdir(folder, { recursive: true });
  const root = `${folder}-root`;
  const files = { certificate: join(folder, "custom_ca.crt"), key: join(folder, "custom_ca.key") };
  await openssl([
    ...newKey(`${root}.key`),
    "-x509",
    "-days",
    "30",
    ...authorityOf(`${name} Root`),
    "-out",
    `${root}.crt`,
  ]);
  const request = `${root}.csr`;
  await openssl([...newKey(files.key), "-subj", `/O=${name}/CN=${name} Issuing`, "-out", request]);
  const extensions = `${root}.ext`;
  await Bun.write(
    extensions,
    "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n",
  );
  const signing = [
    "-CA",
    `${root}.crt`,
    "-CAkey",
    `${root}.key`,
    "-CAcreateserial",
    "-extfile",
    extensions,
  ];
  await openssl([
    "x509",
    "-req",
    "-in",
    request,
    "-days",
    "30",
    ...signing,
    "-out",
    files.certificate,
  ]);
  await Bun.write(join(folder, "custom_ca_chain.crt"), Bun.file(`${root}.crt`));
  return { folder, keyPath: files.key, rootPath: `${root}.crt`, rootKeyPath: `${root}.key` };
}

const newKey = (path: string): readonly string[] => [
  "req",
  "-new",
  "-newkey",
  "rsa:2048",
  "-nodes",
  "-keyout",
  path,
];

const authorityOf = (name: string): readonly string[] => [
  "-subj",
  `/O=${name}/CN=${name}`,
  "-addext",
  "keyUsage=critical,keyCertSign,cRLSign",
];

/** How openssl gets on with a web server when it trusts this root alone; the certificate must bear `address`. */
export async function handshake(
  server: { readonly host: string; readonly address: string },
  rootPath: string,
): Promise<{ readonly status: number; readonly output: string }> {
  const trust = ["-CAfile", rootPath, "-no-CAstore", "-no-CApath", "-verify_return_error"];
  const place = ["-connect", `${server.host}:443`, "-verify_ip", server.address];
  return tryOpenssl(["s_client", ...trust, ...place, "-showcerts"], "Q\n");
}

/** What openssl prints; it must end well. */
export async function openssl(words: readonly string[], stdin = ""): Promise<string> {
  const ended = await tryOpenssl(words, stdin);
  if (ended.status !== 0)
    throw new Error(`openssl ${words[0]} ended with ${ended.status}:\n${ended.output}`);
  return ended.output;
}

/** Both streams together, and how it ended. */
async function tryOpenssl(
  words: readonly string[],
  stdin = "",
): Promise<{ readonly status: number; readonly output: string }> {
  const child = Bun.spawn(["openssl", ...words], {
    stdin: new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
  const [status, ...streams] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status, output: streams.join("") };
}
