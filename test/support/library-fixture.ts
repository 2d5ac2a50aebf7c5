/** The library on in-process machines of a local cloud. */
import { join } from "node:path";
import { CloudBackend, Cluster, type ClusterRequest } from "../../src/index.ts";
import { LocalCloud } from "../local-cloud/local-cloud.ts";
import type { ScriptedAnswer } from "../local-cloud/machines/scripted-answers.ts";
import { scratchFolder } from "./scratch-folder.ts";

const ready = "layout=cluster\nstatus=exit 0\nunit=active\ncheck.status=0\nconfig={}\n";

/** The first match answers. The last one matches everything. */
export const answers: readonly ScriptedAnswer[] = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "artifact\\.sh --version", stdout: '{"variant":"oss","version":"1"}\n' },
  { pattern: "artifact\\.sh --genconf", stdout: "cluster_install.sh\n" },
  { pattern: "resolv\\.conf", stdout: "10.0.0.2\n" },
  { pattern: "e2e-readiness", readsStdin: true, stdout: ready },
  { pattern: "\\bexec hostname\\b", stdout: "{{hostname}}\n" },
  { pattern: "\\bexec false\\b", status: 1, stdout: "half\n", stderr: "one\ntwo\n" },
  { pattern: "", readsStdin: true },
];

interface Fixture extends AsyncDisposable {
  readonly cloud: LocalCloud;
  readonly backend: CloudBackend;
  readonly folder: string;
  /** The calls of `onProgress`. */
  readonly told: string[];
}

export async function openFixture(): Promise<Fixture> {
  const scratch = await scratchFolder();
  const cloud = await LocalCloud.start({ driver: "in-process", directory: scratch.path });
  cloud.answers.replace(answers);
  const told: string[] = [];
  const backend = new CloudBackend({
    region: cloud.region,
    linuxDistribution: "debian-12",
    environment: {
      ...cloud.environment,
      XDG_STATE_HOME: join(scratch.path, "state"),
      AWS_EC2_METADATA_DISABLED: "true",
    },
    onProgress: (line) => told.push(line),
  });
  return {
    cloud,
    backend,
    told,
    folder: scratch.path,
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

export const create = async (
  { backend }: Fixture,
  request: Partial<ClusterRequest> = {},
): Promise<Cluster> => Cluster.create(backend, { variant: "oss", ...request });
