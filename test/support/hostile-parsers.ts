/**
 * Gives one parser of texts from outside the 10 MB that would cost it most, and ends. A parser may refuse them. It must
 * not fail in any other way, and an algorithm whose time grows faster than the text would take hours. Each parser runs
 * in a process of its own, because nothing else can stop it.
 * Usage: bun run test/support/hostile-parsers.ts NAME
 */

import { callFailure } from "../../src/backend/cloud/api/api-errors.ts";
import { type CloudApi, collectPages } from "../../src/backend/cloud/api/api.ts";
import { UnreadableAnswer, judgeResponse } from "../../src/backend/cloud/api/request-handler.ts";
import { readContainerFacts } from "../../src/backend/container/files/file-facts.ts";
import { engineFailure } from "../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../src/backend/container/engine/engine-kinds.ts";
import { readBuildFailure } from "../../src/backend/container/launch/node-image.ts";
import { parseNodeSettings } from "../../src/backend/container/records/labels.ts";
import { parseClusterParts } from "../../src/backend/shared/cluster-file.ts";
import { parseClusterFacts } from "../../src/backend/vm/cluster-facts.ts";
import { readVmFacts } from "../../src/backend/vm/files/file-facts.ts";
import { findSum } from "../../src/backend/vm/images/image-verification.ts";
import { qemuFailure, qemuMessage } from "../../src/backend/vm/qemu/qemu.ts";
import { parseSnapshotFacts } from "../../src/backend/vm/snapshots/snapshot-files.ts";
import { parseHandOver } from "../../src/cluster/export-cluster.ts";
import { readLines } from "../../src/cluster/logs/log-lines.ts";
import { notice, windowsOf } from "../../src/cluster/report/notice.ts";
import { readCases } from "../../src/cluster/report/read-cases.ts";
import { judgeLine } from "../../src/cluster/watch/judge-line.ts";
import { readTick } from "../../src/cluster/watch/judge-tick.ts";
import { ClusterError } from "../../src/errors.ts";
import { parseHead } from "../../src/platform/artifact/artifact-head.ts";
import {
  parseArtifactVersion,
  releaseNumbers,
} from "../../src/platform/artifact/artifact-version.ts";
import {
  parseManifest,
  parseState,
  parseSums,
} from "../../src/platform/checkout/checkout-manifest.ts";
import { parseConfiguration } from "../../src/platform/configuration/configuration-file.ts";
import { parsePlatformFile, parsePlatformHead } from "../../src/platform/folder/platform-file.ts";
import { parseObservation } from "../../src/platform/faults/node-faults.ts";
import { reasonOf } from "../../src/platform/install/phase.ts";
import { layouts } from "../../src/platform/layouts/find-layout.ts";
import { parseLogs } from "../../src/platform/node-logs.ts";
import { parseSuperuserAnswers } from "../../src/platform/readiness/ask-web.ts";
import { judgeNode, parseNodeReport } from "../../src/platform/readiness/node-question.ts";
import { parseResolvers } from "../../src/platform/resolvers.ts";
import { createOutputTail } from "../../src/ssh/connection/command-output.ts";
import { readServerOffer } from "../../src/ssh/connection/connection-errors.ts";
import { parseKey } from "../../src/ssh/keys.ts";
import { parseKnownHosts } from "../../src/ssh/openssh-files.ts";
import { ArchiveProblem } from "../../src/system/files/tar.ts";
import { Masker } from "../../src/system/masker.ts";
import { parseJson } from "../../src/system/files/read-text.ts";
import { maskedPrintable } from "../../src/system/printable.ts";
import { maskUrl } from "../../src/system/mask-url.ts";
import { anyTexts, filled, jsonTexts, size, yamlTexts } from "./costly-texts.ts";
import { neverAborted } from "./never-aborted.ts";
import { type RawEntry } from "./tar-blocks.ts";
import {
  frame,
  hideSecrets,
  node,
  readEngine,
  readImages,
  readInstances,
  unpack,
  link,
  longLinks,
  longNames,
  checkLayer,
  askQemu,
  context,
  ended,
} from "./hostile-inputs.ts";

const each = async (texts: readonly string[], parse: (text: string) => unknown): Promise<void> => {
  for (const text of texts) {
    try {
      await parse(text);
    } catch (error) {
      const isRefusal = [ClusterError, ArchiveProblem, UnreadableAnswer].some(
        (known) => error instanceof known,
      );
      if (!isRefusal) throw error;
    }
  }
};
const docker = engineKinds.docker;

const parsers: Readonly<Record<string, () => Promise<void>>> = {
  secrets: () => each([...anyTexts, ...yamlTexts], hideSecrets),
  version: () => each([...anyTexts, filled("{}"), filled('{"variant":1}')], parseArtifactVersion),
  "failed version": () =>
    each([...anyTexts, filled("now: \n"), filled("a.")], (text) => reasonOf(ended(text))),
  release: () => each([...anyTexts, `1${filled(".1")}`], releaseNumbers),
  "check report": () =>
    each([...anyTexts, ...jsonTexts.slice(-2)], (text) => {
      const check = text.split("\n").map((line) => `check=${line}\n`);
      judgeNode(
        parseNodeReport(`layout=cluster\nstatus=exit 0\ncheck.status=1\n${check.join("")}`),
      );
      judgeNode(parseNodeReport(`${text}\nconfig=${text}`));
    }),
  logs: () => each(anyTexts, (text) => parseLogs(`${text}\n${frame("install.log", text)}`)),
  "text for people": () =>
    each(anyTexts, (text) => maskedPrintable(text, (given) => new Masker().text(given))),
  URL: () => each([...anyTexts, filled("?"), filled("https://")], maskUrl),
  "superuser's answers": () =>
    each(anyTexts, (text) => [
      parseSuperuserAnswers(text),
      parseSuperuserAnswers(`login 200\nagents 200\n${text}`),
    ]),
  resolvers: () => each([...anyTexts, filled("1.1.1.1\n")], parseResolvers),
  "artifact's head": () =>
    each(anyTexts, (text) =>
      parseHead(
        { bytes: Buffer.from(`#!/bin/bash\n# variant: ${text}`), sizeBytes: undefined },
        "x",
      ),
    ),
  "sync's manifest": () =>
    each([...anyTexts, filled("644 1 1 \0"), filled(`${"0".repeat(64)}  ./\\\\\n`)], (text) => {
      parseManifest(text);
      parseSums(text);
      parseState(`# layout cluster\n# version\n${text}\n# tests\n${text}`, layouts, "oss");
    }),
  "fetched archive": async () => {
    const names = (piece: (index: number) => string, count = 20_000): readonly RawEntry[] =>
      Array.from({ length: count }, (_, index) => link(`l${index}`, piece(index)));
    await unpack(names(() => "x"));
    await unpack(names((index) => (index % 9 === 8 ? "x" : `l${index + 1}/a/..`)));
    await unpack(longLinks(1_000, (index) => `${"a/".repeat(1_900)}${index}`));
    await unpack(longLinks(1_000, (index) => `${"a/../".repeat(700)}${index}`));
    await unpack(longLinks(1_000, () => `${"\u0301\u0323".repeat(60)}/`.repeat(25)));
    await unpack(longLinks(5_000, () => "x".repeat(200)));
  },
  "container's snapshots": async () => {
    readImages(20_000, () => "same");
    readImages(20_000, (index) => `s${index}`);
  },
  "container's files": () =>
    each(jsonTexts, (text) => {
      const parts = parseClusterParts(parseJson(text)) ?? [];
      const manifest = {
        backend: "container",
        createdBy: "1",
        facts: parseJson(text),
        parts,
        sha256: "",
      } as const;
      readContainerFacts({ manifest, shown: "x" });
    }),
  layers: async () => {
    const deep = (index: number): string => `${"a/".repeat(199)}${index}`;
    await checkLayer(longNames(2_000, (index) => `${"a/".repeat(2_000)}${index}`));
    await checkLayer([...longNames(2, (index) => `l${index}`, "2"), ...longNames(9_000, deep)]);
    await checkLayer(longNames(9_000, deep, "2"));
  },
  "VM's snapshots": () => each(jsonTexts, (text) => parseSnapshotFacts(parseJson(text))),
  "VM's facts": () =>
    each(jsonTexts, (text) => parseClusterFacts(parseJson(text), "/state/c-0123456789abcdef")),
  "VM's files": () =>
    each(jsonTexts, (text) => {
      const parts = parseClusterParts(parseJson(text)) ?? [];
      const manifest = {
        backend: "vm",
        createdBy: "1",
        facts: parseJson(text),
        parts,
        sha256: "",
      } as const;
      readVmFacts({ manifest, shown: "x" });
    }),
  "hand-over": () => each([...anyTexts, ...jsonTexts], async (text) => parseHandOver(text, "x")),
  "private key": () =>
    each([...anyTexts, ...["a:b\n", "a: \n", "a:\n b\n"].map(filled)], async (text) => {
      for (const kind of ["RSA", "OPENSSH"])
        await parseKey(`-----BEGIN ${kind} PRIVATE KEY-----\n${text}`);
    }),
  "known hosts": () => each([...anyTexts, filled("a ssh-ed25519 A\n")], parseKnownHosts),
  tags: async () => {
    readInstances(20_000, () => "same");
    readInstances(20_000, (index) => `c${index}`);
  },
  labels: async () => {
    readEngine(15_000, node);
    await each(jsonTexts, parseNodeSettings);
  },
  "engine's answers": () =>
    each(
      [...anyTexts, ...["container name ", "image ", "container ", "Error: ", "name "].map(filled)],
      (text) => {
        engineFailure(docker, ["ps"], ended(text));
        readBuildFailure(text);
      },
    ),
  faults: () =>
    each(
      [
        ...anyTexts,
        ...["fault=0123abcd 1 {", "fault=", "link=10.0.0.2 1\n", "clock=1"].map(filled),
        ...jsonTexts.map((text) => `fault=0123abcd 1 ${text}`),
      ],
      parseObservation,
    ),
  "QEMU's answers": () =>
    each([...anyTexts, filled("qemu: "), filled("A =")], (text) => {
      qemuFailure("qemu", ended(text));
      qemuMessage(text, 2);
      findSum(text, "x");
    }),
  "QEMU's monitor": () =>
    each(
      [filled("["), filled("\n"), filled('{"id":0}\n'), filled('{"event":1}\n'), filled("x")],
      askQemu,
    ),
  "API's answers": async () => {
    await each(["<a>", "<a ", "<", " ", "<Code>", "</a>"].map(filled), async (text) => {
      for (const body of [text, `<AResponse>${text}</AResponse>`, `<Response>${text}</Response>`])
        await judgeResponse(new Response(body, { status: body.startsWith("<R") ? 400 : 200 }));
    });
    await each([...anyTexts, filled("Encoded "), filled("https://a.")], (text) => {
      const answered = { name: "OptInRequired", $metadata: { httpStatusCode: 400 } };
      callFailure(Object.assign(new Error(text), answered), context);
    });
    await each(["endless pages"], async () => {
      const api = {
        call: async () => ({ Images: [{}], NextToken: "more" }),
      } as unknown as CloudApi;
      return collectPages(
        api,
        ["DescribeImages", {}],
        ({ Images }) => Images,
        new AbortController().signal,
      );
    });
  },
  configuration: () =>
    each([...anyTexts, ...yamlTexts], async (text) => parseConfiguration(text, "x")),
  "platform's folder": () => {
    // Longer texts are refused unread.
    const starts = [...anyTexts, ...yamlTexts].map((text) => text.slice(0, 60_000));
    const inside = yamlTexts.map((text) => `ports: ${text.slice(0, 20_000)}`);
    return each([...anyTexts, ...starts, ...inside], async (text) => {
      await parsePlatformFile(text, "x");
      parsePlatformHead(text);
      parsePlatformHead(text.slice(0, 12_000));
      parsePlatformHead(
        `{"ports":[${"1,".repeat(5_000)}1],"name":${JSON.stringify(text.slice(0, 1_000))}}`,
      );
    });
  },
  "lines of journals": () => {
    const errors = [`${"a".repeat(199)}b`, `${"a*".repeat(98)}aab`, `${"aaa*".repeat(49)}abc`];
    const signs = ["Unit ", "Unit a: ", "Oops:", "general protection ", "a.service: "].map(filled);
    return each([...anyTexts, filled("a"), filled("aab"), ...signs], (text) => {
      for (const allowed of [[], errors])
        for (const unit of ["a", "kernel", "systemd"])
          judgeLine({ unit, text }, { errors, allowed });
      readTick(text);
    });
  },
  "report's lines": () =>
    each([...anyTexts, filled("1700000000.000 h a: x\n"), filled("Nov 30 00:00:00 ")], (text) => {
      for (const name of ["journal.txt", "install.log"])
        readLines({ node: "master_0", name, text }, { aheadMs: 0, nowMs: 1.7e12 });
    }),
  "report's test cases": () =>
    each(
      ["<", "<testcase ", '<testcase a="', "<testcase a='b'>", "<error/>", "<!--", "--><!--"]
        .map(filled)
        .concat(anyTexts),
      (text) => readCases(text, { startMs: 0, endMs: 1 }),
    ),
  "report's faults": async () => {
    const fault = { kind: "fault", fault: "disk", text: "", nodes: ["master_0"] } as const;
    const events = Array.from({ length: 100_000 }, (_, index) => ({
      ...fault,
      id: index.toString(16).padStart(8, "0"),
      at: new Date(1.7e12 + index).toISOString(),
      course: "begun" as const,
    }));
    const lines = Array.from({ length: 400_000 }, (_, index) => ({
      ms: 1.7e12,
      node: `agent_${index % 800}`,
      unit: "kernel",
      text: "kernel BUG at",
    }));
    await notice(lines, windowsOf(events, 1.8e12), neverAborted);
  },
  JSON: () => each([...anyTexts, ...jsonTexts], parseJson),
  "remote output": async () => {
    const tail = createOutputTail(4 * 1024 * 1024);
    for (let count = 0; count < size; count += 1) tail.add("x");
    tail.text();
  },
  "ssh's greeting": () =>
    each(anyTexts, (text) => readServerOffer(`Handshake: (remote) KEX method: ${text}`)),
};

export const parserNames: readonly string[] = Object.keys(parsers);

if (import.meta.main) {
  const name = process.argv[2] ?? "";
  await parsers[name]!();
  console.log("ended");
}
