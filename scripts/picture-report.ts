/**
 * Makes a cluster of the example etcd, cuts its members off from each other while a test writes to it, and writes the first screen of the report about
 * that to src/commands/report.svg, for light and dark screens. Run it after the report's looks have changed. Needs Docker, Chromium and built programs.
 * Usage: bun run scripts/picture-report.ts
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const root = join(import.meta.dir, "..");
const [width, height] = [1280, 480];
const lines = `cluster-container examples etcd ./etcd
cat >etcd/tests/write-values <<'END'
#!/bin/sh
export ETCDCTL_API=3
for value in $(seq 100); do
  etcdctl --endpoints "http://$CLUSTER_PRIVATE_ADDRESS:2379" --command-timeout 3s put test "$value" || exit 1
  sleep 1
done
END
chmod +x etcd/tests/write-values
cluster-container create --wait -c nightly ./etcd
cluster-container run -c nightly ./write-values &
sleep 10
cluster-container fault partition --shape isolate --for 20s --wait -c nightly
wait $! || :
cluster-container report -c nightly report.html
`;

/** Pictures of the page as a light and as a dark screen shows it. */
async function picturesOf(page: string, folder: string): Promise<readonly string[]> {
  using view = new Bun.WebView({
    width,
    height,
    backend: {
      type: "chrome",
      url: false,
      path: Bun.which("chromium") ?? "chromium",
      stderr: "ignore",
      argv: ["--no-sandbox", "--no-first-run", "--disable-background-networking"],
    },
    dataStore: { directory: join(folder, "profile") },
  });
  await view.navigate(`file://${page}`);
  const size = { width, height, deviceScaleFactor: 1, mobile: false };
  await view.cdp("Emulation.setDeviceMetricsOverride", size);
  await view.cdp("Emulation.setScrollbarsHidden", { hidden: true });
  const pictures: string[] = [];
  for (const value of ["light", "dark"]) {
    const features = [{ name: "prefers-color-scheme", value }];
    await view.cdp("Emulation.setEmulatedMedia", { media: "", features });
    const { data } = await view.cdp<{ data: string }>("Page.captureScreenshot", { format: "png" });
    pictures.push(data);
  }
  return pictures;
}

const svgOf = ([light, dark]: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>.dark { display: none } @media (prefers-color-scheme: dark) { .light { display: none } .dark { display: inline } }</style>
<title>The report of a test of etcd, during which a fault cut its members off from each other</title>
<image class="light" width="${width}" height="${height}" href="data:image/png;base64,${light}"/>
<image class="dark" width="${width}" height="${height}" href="data:image/png;base64,${dark}"/>
</svg>
`;

const home = await mkdtemp(join(tmpdir(), "cluster-e2e-picture."));
const options = {
  cwd: home,
  env: { PATH: `${join(root, "dist")}${delimiter}${process.env["PATH"]}`, HOME: home },
};
try {
  const child = Bun.spawn(["sh", "-ec", lines], options);
  if ((await child.exited) !== 0) throw new Error(`the commands ended with ${child.exitCode}`);
  const svg = svgOf(await picturesOf(join(home, "report.html"), home));
  const path = join(root, "src", "commands", "report.svg");
  await Bun.write(path, svg);
  console.log(`${path}: ${svg.length} bytes`);
} finally {
  await Bun.spawn(["cluster-container", "destroy", "-c", "nightly", "--yes"], options).exited;
  await rm(home, { recursive: true });
}
