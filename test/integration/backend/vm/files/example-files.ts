import { test } from "bun:test";
import type { ClusterFileReference } from "../../../../../src/model/snapshot.ts";
import {
  type ExampleFile,
  type Facts,
  leftOfFiles,
  loadClusterFile,
  makeDisk,
  withOtherParts,
} from "../../../../support/example-cluster-file.ts";
import type { scratchFolder } from "../../../../support/scratch-folder.ts";

export const lack = Bun.which("qemu-img") === null ? "no QEMU here" : undefined;

export const testHere = test.skipIf(lack !== undefined);

export const megabyte = 1024 * 1024;

export const state: { folder?: Awaited<ReturnType<typeof scratchFolder>>; good?: ExampleFile } = {};

export const folder = (): string => state.folder!.path;

export const good = (): ExampleFile => state.good!;

export const image = async (...words: readonly string[]): Promise<Buffer> =>
  makeDisk(folder(), words);

export const loadFrom = async (file: ClusterFileReference): Promise<readonly string[]> =>
  loadClusterFile(folder(), file);

export const load = async (path: string): Promise<readonly string[]> =>
  loadFrom({ location: { path, shown: "FILE" } });

export const left = async (): Promise<readonly string[]> => leftOfFiles(folder());

export const withParts = (
  changes: Readonly<Record<string, Buffer | undefined>>,
  facts: Facts = {},
): Buffer => withOtherParts(good(), changes, facts);

export const disk = "master_0/disk.qcow2";

export const damaged = "snapshot-unusable";
