/** Files with a cluster of containers, whose facts and layers a test chooses. */
import { type Manifest, manifestFor, putTogether, sha256 } from "./rewrite-cluster-file.ts";
import { type RawEntry, rawArchive } from "./tar-blocks.ts";

type Facts = Readonly<Record<string, unknown>>;
interface Layers {
  readonly base?: Buffer;
  readonly top?: Buffer;
  readonly volume?: Buffer;
}

const folders: readonly RawEntry[] = [
  { name: "etc/", type: "5" },
  { name: "bin", type: "2", linkTarget: "/usr/bin" },
];
export const goodBase = rawArchive(...folders, { name: "etc/hostname", contents: "node" });
export const goodTop = rawArchive({ name: "./etc/.wh.hostname" }, { name: "dev/null", type: "3" });
export const goodVolume = rawArchive(
  { name: "./", type: "5" },
  { name: "./note", contents: "saved" },
);
export const part = (sum: string): string => `layers/${sum}`;

/** A file whose sums are right, with these contents and facts. */
export function fileWith(
  { base = goodBase, top = goodTop, volume = goodVolume }: Layers = {},
  facts: Facts = {},
) {
  const contents = new Map([
    [part(sha256(base)), base],
    [part(sha256(top)), top],
    ["volumes/master_0", volume],
  ]);
  const node = {
    role: "master",
    index: 0,
    platformAddress: "172.18.0.2/16",
    memory: "1g",
    volumes: ["/var/lib/docker"],
  };
  const own = {
    clusterId: "first",
    snapshot: "installed",
    createdAt: "2026-11-24T12:00:00.000Z",
    variant: "none",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    architecture: "amd64",
    cgroupVersion: "2",
    nodes: [{ ...node, layers: [sha256(base), sha256(top)] }],
    ...facts,
  };
  const format = {
    format: "cluster-e2e-cluster",
    formatVersion: 1,
    backend: "container",
    createdBy: "1",
    facts: own,
  };
  return { manifest: manifestFor({ ...format, parts: [] }, contents), contents };
}

export const good = fileWith();
export const bytes = putTogether(good.manifest, good.contents.values());
export const withLayers = (layers: Layers): Buffer => {
  const { manifest, contents } = fileWith(layers);
  return putTogether(manifest, contents.values());
};
export const withTop = (...entries: readonly RawEntry[]): Buffer =>
  withLayers({ top: rawArchive(...entries) });
export const withFacts = (facts: Facts): Buffer =>
  putTogether(fileWith({}, facts).manifest, good.contents.values());
export const withNode = (facts: Facts): Buffer =>
  withFacts({
    nodes: [
      { ...(good.manifest.facts as { readonly nodes: readonly Facts[] }).nodes[0], ...facts },
    ],
  });
export const withSecondNode = (facts: Facts): Buffer => {
  const { nodes } = good.manifest.facts as { readonly nodes: readonly Facts[] };
  const second = { ...nodes[0], role: "agent", platformAddress: "172.18.0.3/16", ...facts };
  return withFacts({ counts: { master: 1, agent: 1, public_agent: 0 }, nodes: [...nodes, second] });
};
export const withFields = (fields: Partial<Manifest> & Facts): Buffer =>
  putTogether({ ...good.manifest, ...fields }, good.contents.values());
export const withLie = (place: number, lie: Facts): Buffer =>
  withFields({
    parts: good.manifest.parts.map((each, index) => (index === place ? { ...each, ...lie } : each)),
  });
export const flipped = (at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at < 0 ? bytes.length + at : at]! ^= 0x55;
  return changed;
};
