import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { fetchArtifact } from "../../../../src/platform/install/fetch-artifact.ts";
import { installWork } from "../../../../src/platform/install-paths.ts";
import type { PhaseContext } from "../../../../src/platform/install/phase.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";

const { signal } = new AbortController();
const elsewhere = "https://downloads.example.com/artifact.sh";

/** Runs the phase on a node whose downloads end with these statuses. Tells what it did, in order. */
async function fetchOn(statuses: readonly number[], url = elsewhere, output = "") {
  const done: string[] = [];
  const texts: string[] = [];
  const connection = {
    run: async ({ task = "", sudo, onOutput }: RemoteCommand) => {
      expect(sudo).toBe(true);
      const tries = done.push(task);
      if (task !== "downloading the artifact") return { status: 0, stdout: "", stderr: "" };
      await onOutput?.("stdout", output);
      return { status: statuses[tries - 1] ?? 0, stdout: "", stderr: "curl: (6) no such host\n" };
    },
    upload: async (
      _: unknown,
      { onProgress }: { readonly onProgress?: (sent: number, total: number) => void },
    ) => {
      done.push("upload");
      onProgress?.(5e6, 20e6);
    },
  } as unknown as Connection;
  const { progress: silent, told } = recordingProgress();
  const detail = (level: number, text: string): void =>
    void told.push(`-${"v".repeat(level)}: ${text}`);
  const progress = { ...silent, detail };
  const step = {
    update: (text: string) => void texts.push(text),
    done: () => {},
    [Symbol.dispose]: () => {},
  };
  const context: PhaseContext = {
    node: {} as NodeRecord,
    reference: "master_0",
    connection,
    step,
    progress,
  };
  const phase = fetchArtifact({
    artifact: { kind: "url", url, shown: url },
    download: async (onProgress) => {
      done.push("download");
      onProgress(2_500_000, undefined);
      return { path: "/tmp/artifact", file: { sizeBytes: 20_000_000 } } as never;
    },
    untilPrepared: async () => {},
    paths: installWork,
  });
  await phase.run(context, signal);
  return { done, told, texts };
}

const fromHere = ["download", "creating the installer's folder", "upload"];

test("a node that can download the artifact does, and shows how far it is", async () => {
  const { done, told, texts } = await fetchOn(
    [0],
    elsewhere,
    "size: 1000 2000000\nsize: 12000000 310000000\n",
  );
  expect([done, told]).toEqual([["downloading the artifact"], []]);
  expect(texts).toEqual(["12 of 310 MB"]);
});

test("from a server that doesn't say how long the artifact is, it shows how much has arrived", async () => {
  expect((await fetchOn([0], elsewhere, "size: 12000000 \n")).texts).toEqual(["12 MB"]);
});

test("a node that lacks curl tries again once it is prepared", async () => {
  expect((await fetchOn([127, 0])).done).toEqual([
    "downloading the artifact",
    "downloading the artifact",
  ]);
});

test.each([
  ["downloads nothing", [6]],
  ["downloads nothing once it has curl", [127, 6]],
])(
  "for a node that %s, this computer downloads and uploads it, and -v says why",
  async (_, statuses) => {
    const { done, told, texts } = await fetchOn(statuses);
    expect(done).toEqual([...statuses.map(() => "downloading the artifact"), ...fromHere]);
    expect(told).toHaveLength(1);
    expect(unmarked(told[0]!)).toStartWith(
      "-v: master_0 cannot download the artifact (curl: (6) no such host)",
    );
    expect(texts).toEqual(["2.5 MB to this computer", "5.0 of 20 MB to master_0"]);
  },
);

test.each([
  "http://localhost/a",
  "http://x.localhost/a",
  "http://127.0.0.1:8000/a",
  "http://[::1]/a",
])("no node downloads %s, which is another machine there", async (url) => {
  expect((await fetchOn([], url)).done).toEqual(fromHere);
});

test.each(["http://128.0.0.1/a", "http://127.example.com/a", "http://localhost.example.com/a"])(
  "a node downloads %s",
  async (url) => {
    expect((await fetchOn([0], url)).done).toEqual(["downloading the artifact"]);
  },
);
