import { unmarked } from "../../../../../src/outside-text.ts";
import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { join } from "node:path";
import { type Runtime, systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { cloudChecks } from "../../../../../src/backend/cloud/checks/checks.ts";
import type { CheckedDefaults } from "../../../../../src/backend/cloud/checks/facts.ts";
import type { CheckResult } from "../../../../../src/model/check.ts";
import { runChecks } from "../../../../../src/commands/doctor/execute-doctor.ts";
import { accounts } from "../../../../local-cloud/endpoint/accounts.ts";
import { LocalCloud } from "../../../../local-cloud/local-cloud.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const usualDefaults: CheckedDefaults = {
  region: "us-west-2",
  distribution: "centos-7",
  instanceType: "m5.large",
};

/** Permissions that a dry run cannot check without an existing resource. */
export const untriedPermissions = [
  "ec2:AuthorizeSecurityGroupIngress",
  "ec2:GetConsoleOutput",
  "ec2:ModifyInstanceMetadataOptions",
  "ec2:TerminateInstances",
  "ec2:DeleteSecurityGroup",
];

interface Question {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly defaults?: Partial<CheckedDefaults>;
  readonly limitMs?: number;
  /** Interrupts the checks after this time. */
  readonly interruptedAfterMs?: number;
}

/** The outcomes of the checks, by name. */
class Diagnosis {
  readonly results: readonly CheckResult[];

  constructor(results: readonly CheckResult[]) {
    this.results = results;
  }

  /** `fail: what is wrong → what to do`, with details. */
  told(name: string): string {
    const found = this.results.find((result) => result.name === name);
    if (found === undefined)
      throw new Error(
        `no check "${name}" among ${this.results.map((result) => result.name).join()}`,
      );
    return unmarked(outcomeText(found));
  }

  /** The names of the checks with this outcome. */
  names(status: CheckResult["status"]): readonly string[] {
    return this.results.filter((result) => result.status === status).map(({ name }) => name);
  }
}

interface DoctorFixture extends AsyncDisposable {
  readonly cloud: LocalCloud;
  /** Contains the home and the state folder. */
  readonly folder: string;
  diagnose(question: Question): Promise<Diagnosis>;
}

/** A fixture for all tests of a file, reset before each of them. */
export function shareDoctorFixture(): () => DoctorFixture {
  const state: { fixture?: DoctorFixture } = {};
  beforeAll(async () => {
    state.fixture = await openDoctorFixture();
  });
  beforeEach(async () => {
    await state.fixture?.cloud.reset();
  });
  afterAll(async () => {
    await state.fixture?.[Symbol.asyncDispose]();
  });
  return () => state.fixture!;
}

async function openDoctorFixture(): Promise<DoctorFixture> {
  const folder = await scratchFolder();
  const cloud = await LocalCloud.start({ driver: "in-process", directory: folder.path });
  const base = {
    ...cloud.environment,
    HOME: folder.path,
    XDG_STATE_HOME: join(folder.path, "state"),
    AWS_EC2_METADATA_DISABLED: "true",
  };
  return {
    cloud,
    folder: folder.path,
    diagnose: async ({
      environment = {},
      defaults = {},
      limitMs = 40_000,
      interruptedAfterMs = 60_000,
    }) => {
      const ended = new AbortController();
      const signal = AbortSignal.timeout(interruptedAfterMs);
      const told: string[] = [];
      const runtime: Runtime = {
        environment: { ...base, ...environment },
        clock: systemClock,
        progress: { ...silentProgress, detail: (_level, text) => told.push(text) },
      };
      try {
        const shared = AbortSignal.any([signal, ended.signal]);
        const checks = cloudChecks(
          { ...runtime, signal: shared },
          { ...usualDefaults, ...defaults },
        );
        const results = await runChecks({ ...runtime, limitMs, signal }, checks);
        expectNoSecrets(JSON.stringify([results, told]));
        return new Diagnosis(results);
      } finally {
        ended.abort();
      }
    },
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Whatever is looked at, and whatever is wrong with it. */
function expectNoSecrets(text: string): void {
  for (const account of Object.values(accounts)) {
    expect(text).not.toContain(account.secretAccessKey);
    if ("sessionToken" in account) expect(text).not.toContain(account.sessionToken);
  }
}
