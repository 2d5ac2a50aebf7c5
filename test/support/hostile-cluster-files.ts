/** Files with clusters of containers that are damaged, foreign or made by an attacker. */
import { manifestFor, putTogether, sha256 } from "./rewrite-cluster-file.ts";
import { endOfArchive, paxRecord, rawArchive, rawEntry } from "./tar-blocks.ts";
import {
  goodBase,
  goodTop,
  goodVolume,
  part,
  good,
  bytes,
  withLayers,
  withTop,
  withFacts,
  withNode,
  withSecondNode,
  withFields,
  withLie,
  flipped,
} from "./cluster-file.ts";

const damaged = "snapshot-unusable";
const leadsOut = /leads out of the archive/;
const notWithin = /is not a name within the archive/;
const badFacts = /facts about the cluster are not valid/;
const badParts = /parts are not those of its nodes/;

/** What is wrong with a file, the id and the message of the error, and the file. */
export const hostileFiles: readonly (readonly [string, string, RegExp, () => Buffer])[] = [
  ["an empty file", damaged, /was not written by/, () => Buffer.alloc(0)],
  [
    "an image that docker saved",
    damaged,
    /was not written by/,
    () => rawArchive({ name: "manifest.json", contents: "[]" }),
  ],
  ["a manifest that isn't JSON", damaged, /was not written by/, () => flipped(8)],
  ["a file that ends within its manifest", damaged, /is incomplete/, () => bytes.subarray(0, 300)],
  [
    "a file that lacks its end",
    damaged,
    /is incomplete|has another checksum/,
    () => bytes.subarray(0, -20),
  ],
  [
    "a manifest with a flipped bit",
    damaged,
    /its manifest is not valid/,
    () => flipped(bytes.indexOf("installed")),
  ],
  ["contents with flipped bits", damaged, /is damaged/, () => flipped(-60)],
  ["a newer format", damaged, /newer version/, () => withFields({ formatVersion: 2 })],
  [
    "a file of virtual machines",
    damaged,
    /is a cluster of cluster-vm/,
    () => withFields({ backend: "vm" }),
  ],
  [
    "an encrypted file",
    damaged,
    /is encrypted with age/,
    () => Buffer.from("age-encryption.org/v1\n-> X25519 abc\n"),
  ],
  [
    "containers of another processor",
    damaged,
    /holds containers for s390x/,
    () => withFacts({ architecture: "s390x" }),
  ],
  [
    "nodes that need cgroups 1",
    damaged,
    /holds nodes with centos-7, whose systemd needs cgroups 1/,
    () => withFacts({ cgroupVersion: "1", distribution: "centos-7" }),
  ],
  ["a cluster id that is a path", damaged, badFacts, () => withFacts({ clusterId: "../../etc" })],
  [
    "a snapshot's name with an option",
    damaged,
    badFacts,
    () => withFacts({ snapshot: "--privileged" }),
  ],
  [
    "no nodes",
    damaged,
    badFacts,
    () => withFacts({ counts: { master: 0, agent: 0, public_agent: 0 }, nodes: [] }),
  ],
  [
    "more nodes than it describes",
    damaged,
    badFacts,
    () => withFacts({ counts: { master: 1, agent: 9, public_agent: 0 } }),
  ],
  ["a node of a role that there isn't", damaged, badFacts, () => withNode({ role: "attacker" })],
  [
    "an address with an option",
    damaged,
    badFacts,
    () => withNode({ platformAddress: "172.18.0.2/16 --privileged" }),
  ],
  [
    "a memory limit with an option",
    damaged,
    badFacts,
    () => withNode({ memory: "1g --privileged" }),
  ],
  [
    "a volume that is a path of this computer",
    damaged,
    badFacts,
    () => withNode({ volumes: ["/etc:/etc"] }),
  ],
  ["a volume that leads up", damaged, badFacts, () => withNode({ volumes: ["/var/../etc"] })],
  [
    "a layer whose name is a path",
    damaged,
    badFacts,
    () => withNode({ layers: ["../../../etc/passwd"] }),
  ],
  ["a node without layers", damaged, badFacts, () => withNode({ layers: [] })],
  ["a second node without layers", damaged, badFacts, () => withSecondNode({ layers: [] })],
  [
    "a second node with the first one's name",
    damaged,
    badFacts,
    () => withSecondNode({ role: "master" }),
  ],
  [
    "a second node with the first one's address",
    damaged,
    badFacts,
    () => withSecondNode({ platformAddress: "172.18.0.2/16" }),
  ],
  ["a layer that no node has", damaged, badParts, () => withNode({ layers: [sha256(goodBase)] })],
  [
    "a layer that is missing above others",
    damaged,
    badParts,
    () => withNode({ layers: [sha256(goodBase), "0".repeat(64), sha256(goodTop)] }),
  ],
  ["a part of another name", damaged, badParts, () => withLie(0, { name: "manifest.json" })],
  ["a part that leads out", damaged, badParts, () => withLie(0, { name: "../x" })],
  [
    "a layer with another checksum than its name",
    damaged,
    badParts,
    () => withLie(0, { sha256: "0".repeat(64) }),
  ],
  [
    "a part twice",
    damaged,
    badParts,
    () => withFields({ parts: [...good.manifest.parts, good.manifest.parts[2]!] }),
  ],
  [
    "a volume before the layers",
    damaged,
    badParts,
    () => withFields({ parts: good.manifest.parts.toReversed() }),
  ],
  ["a volume of another node", damaged, badParts, () => withLie(2, { name: "volumes/agent_0" })],
  [
    "a size that is too large",
    damaged,
    /is incomplete/,
    () => withLie(2, { bytes: goodVolume.length + 512 }),
  ],
  [
    "a size that is too small",
    damaged,
    /is damaged/,
    () => withLie(2, { bytes: goodVolume.length - 512 }),
  ],
  [
    "a size that no disk has",
    "capacity-lacking",
    /GB are required/,
    () => withLie(2, { bytes: 2 ** 52 }),
  ],
  [
    "a volume with another checksum",
    damaged,
    /volumes\/master_0 has another checksum/,
    () => withLie(2, { sha256: "0".repeat(64) }),
  ],
  [
    "a hundred megabytes of zeros for a few bytes",
    damaged,
    /longer than its manifest says/,
    () => putTogether(good.manifest, [...good.contents.values(), Buffer.alloc(1e8)]),
  ],
  [
    "layers that are nowhere",
    "image-not-found",
    /lacks the nodes' image/,
    () => {
      const contents = new Map([[part(sha256(goodTop)), goodTop]]);
      return putTogether(manifestFor(good.manifest, contents), contents.values());
    },
  ],
  [
    "a layer that isn't an archive",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.alloc(2048, "x") }),
  ],
  [
    "a layer that ends early",
    damaged,
    /the archive is incomplete/,
    () => withLayers({ top: goodTop.subarray(0, 512) }),
  ],
  [
    "a layer with a second archive behind its end",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.concat([goodTop, goodBase]) }),
  ],
  ["a file above the root", damaged, leadsOut, () => withTop({ name: "../etc/cron.d/x" })],
  [
    "a file above the root in the middle",
    damaged,
    leadsOut,
    () => withTop({ name: "etc/../../x" }),
  ],
  ["an absolute name", damaged, notWithin, () => withTop({ name: "/etc/passwd" })],
  [
    "a long name that leads out",
    damaged,
    leadsOut,
    () => withTop({ name: "pax", type: "x", contents: paxRecord("path", "../x") }, { name: "x" }),
  ],
  [
    "a long name of GNU tar that leads out",
    damaged,
    leadsOut,
    () => withTop({ name: "././@LongLink", type: "L", contents: "../x\0" }, { name: "x" }),
  ],
  [
    "a sparse file with another name",
    damaged,
    /sparse files/,
    () =>
      withTop(
        { name: "pax", type: "x", contents: paxRecord("GNU.sparse.name", "../x") },
        { name: "x" },
      ),
  ],
  [
    "a hard link to a file of this computer",
    damaged,
    notWithin,
    () => withTop({ name: "shadow", type: "1", linkTarget: "/etc/shadow" }),
  ],
  [
    "a hard link above the root",
    damaged,
    leadsOut,
    () => withTop({ name: "shadow", type: "1", linkTarget: "../etc/shadow" }),
  ],
  [
    "a file through a symbolic link",
    damaged,
    /leads through a symbolic link/,
    () => withTop({ name: "out", type: "2", linkTarget: "/etc" }, { name: "out/passwd" }),
  ],
  [
    "a hard link through a symbolic link",
    damaged,
    /leads through a symbolic link/,
    () =>
      withTop(
        { name: "out", type: "2", linkTarget: "/" },
        { name: "x", type: "1", linkTarget: "out/etc/shadow" },
      ),
  ],
  ["a deletion of the folder above", damaged, leadsOut, () => withTop({ name: "etc/.wh..." })],
  ["an entry of an unknown type", damaged, /unknown type/, () => withTop({ name: "x", type: "S" })],
  [
    "a volume with a file above it",
    damaged,
    leadsOut,
    () => withLayers({ volume: rawArchive({ name: "../x" }) }),
  ],
  [
    "attributes of 3 MB",
    damaged,
    /the archive is damaged/,
    () => withTop({ name: "pax", type: "x", contents: Buffer.alloc(3e6, "x") }, { name: "x" }),
  ],
  [
    "a name of 5,000 characters",
    damaged,
    notWithin,
    () =>
      withTop(
        { name: "pax", type: "x", contents: paxRecord("path", "x".repeat(5000)) },
        { name: "x" },
      ),
  ],
  [
    "a size beyond all numbers",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.concat([hugeEntry(), endOfArchive]) }),
  ],
];

/** An entry whose binary size takes all bits. */
function hugeEntry(): Buffer {
  const block = rawEntry({ name: "x" });
  block.fill(0xff, 124, 136);
  block[124] = 0x80;
  block.fill(" ", 148, 156);
  block.write(
    block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0"),
    148,
    "latin1",
  );
  block[154] = 0;
  return block;
}
