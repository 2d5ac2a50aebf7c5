/** If the first URL of an image or of its checksums begins with https, so does each one that it is redirected to. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { distributions, publishedImage } from "../../../../src/backend/vm/images/images.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { artifactBytes, rangeAnswer, webServer } from "../../platform/artifact/artifact-server.ts";

const bytes = artifactBytes(5_000, "QFI");
const sum = createHash("sha256").update(bytes).digest("hex");

test.each([
  ["an image", "/sums", "/via-http/disk.qcow2"],
  ["its checksums", "/via-http/sums", "/disk.qcow2"],
])(
  "a redirect of %s from https to http and back is refused at the first step",
  async (_, sums, disk) => {
    await using folder = await scratchFolder();
    await using plain = webServer((request) =>
      redirect(`${state.secure}${new URL(request.url).pathname}`),
    );
    const state = { secure: "" };
    await using secure = webServer(
      (request) => {
        const { pathname } = new URL(request.url);
        if (pathname.startsWith("/via-http/"))
          return redirect(`${plain.origin}${pathname.slice("/via-http".length)}`);
        return pathname === "/sums"
          ? new Response(`${sum}  disk.qcow2\n`)
          : rangeAnswer(request, bytes, {});
      },
      await selfSigned(folder.path),
    );
    state.secure = secure.origin;
    const environment = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder.path, "cert.pem") };
    const child = async (...paths: string[]): Promise<string> => {
      const urls = paths.map((path) => `${secure.origin}${path}`);
      return (
        await Bun.$`${process.execPath} -e ${obtainInChild} ${folder.path} ${urls}`
          .env(environment)
          .text()
      ).trim();
    };
    expect(await child(sums, disk)).toContain("the server redirects from https to the insecure");
    expect(plain.requests).toEqual([]);
    expect(await child("/sums", "/disk.qcow2")).toEndWith(".img");
  },
);

test("every publisher's image and checksums have an https URL", () => {
  const published = distributions.flatMap((name) =>
    (["x64", "arm64"] as const).map((architecture) =>
      publishedImage(name, architectureOf(architecture)),
    ),
  );
  const urls = published.flatMap(({ url, sumsUrl }) => [url, sumsUrl]);
  expect(urls.filter((url) => !url.startsWith("https://"))).toEqual([]);
});

const redirect = (location: string): Response =>
  new Response(null, { status: 302, headers: { location } });

/** Uses a child process, because the runtime reads NODE_EXTRA_CA_CERTS only when it starts. */
const obtainInChild = `
  const { obtainImage } = await import("${import.meta.dir}/../../../../src/backend/vm/images/image-store.ts");
  const { systemClock } = await import("${import.meta.dir}/../../../../src/system/runtime.ts");
  const { silentProgress } = await import("${import.meta.dir}/../../../support/silent-progress.ts");
  const [cache, listUrl, url] = process.argv.slice(-3);
  const image = { name: "it", path: undefined, source: { url, prefix: "own", sums: { listUrl } } };
  const runtime = { environment: { XDG_CACHE_HOME: cache }, clock: systemClock, progress: silentProgress };
  const work = { ...runtime, signal: new AbortController().signal };
  console.log(await obtainImage(work, image).catch((error) => error.message));
`;

async function selfSigned(folder: string): Promise<Bun.TLSOptions> {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  await Bun.$`openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout ${key} -out ${cert}`.quiet();
  return { key: Bun.file(key), cert: Bun.file(cert) };
}
