import type { ExampleName } from "./example-names.ts";
import etcdCheck from "./etcd/check" with { type: "text" };
import etcdInstall from "./etcd/install" with { type: "text" };
import etcdFacts from "./etcd/platform.yaml" with { type: "text" };
import etcdTest from "./etcd/tests/etcd-test" with { type: "text" };
import pacemakerCheck from "./pacemaker/check" with { type: "text" };
import pacemakerCorosyncConf from "./pacemaker/corosync.conf" with { type: "text" };
import pacemakerInstall from "./pacemaker/install" with { type: "text" };
import pacemakerFacts from "./pacemaker/platform.yaml" with { type: "text" };
import pacemakerResources from "./pacemaker/resources.cib" with { type: "text" };
import pacemakerTest from "./pacemaker/tests/pacemaker-test" with { type: "text" };
import slurmCheck from "./slurm/check" with { type: "text" };
import slurmInstall from "./slurm/install" with { type: "text" };
import slurmFacts from "./slurm/platform.yaml" with { type: "text" };
import slurmWebService from "./slurm/slurm-web.service" with { type: "text" };
import slurmConf from "./slurm/slurm.conf" with { type: "text" };
import slurmTest from "./slurm/tests/slurm-test" with { type: "text" };
import slurmWebPy from "./slurm/web.py" with { type: "text" };
import swarmCheck from "./swarm/check" with { type: "text" };
import swarmInstall from "./swarm/install" with { type: "text" };
import swarmFacts from "./swarm/platform.yaml" with { type: "text" };
import swarmTokensService from "./swarm/swarm-tokens.service" with { type: "text" };
import swarmTest from "./swarm/tests/swarm-test" with { type: "text" };

/** A file of a platform folder. */
export interface ExampleFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** 0o644, or 0o755 for a program. */
  readonly mode: number;
  readonly text: string;
}

/** Scripts are programs. A module has no file modes, so their first line decides. */
const filesOf = (texts: Readonly<Record<string, string>>): readonly ExampleFile[] =>
  Object.entries(texts).map(([path, text]) => ({ path, mode: text.startsWith("#!") ? 0o755 : 0o644, text }));

/** Bun's types make anything of a YAML file, but with `type: "text"` it is one. */
const text = (imported: unknown): string => String(imported);

/** Every file of the folders beside this module. */
export const examples: Readonly<Record<ExampleName, readonly ExampleFile[]>> = {
  etcd: filesOf({
    check: etcdCheck,
    install: etcdInstall,
    "platform.yaml": text(etcdFacts),
    "tests/etcd-test": etcdTest,
  }),
  pacemaker: filesOf({
    check: pacemakerCheck,
    "corosync.conf": pacemakerCorosyncConf,
    install: pacemakerInstall,
    "platform.yaml": text(pacemakerFacts),
    "resources.cib": pacemakerResources,
    "tests/pacemaker-test": pacemakerTest,
  }),
  slurm: filesOf({
    check: slurmCheck,
    install: slurmInstall,
    "platform.yaml": text(slurmFacts),
    "slurm-web.service": slurmWebService,
    "slurm.conf": slurmConf,
    "tests/slurm-test": slurmTest,
    "web.py": slurmWebPy,
  }),
  swarm: filesOf({
    check: swarmCheck,
    install: swarmInstall,
    "platform.yaml": text(swarmFacts),
    "swarm-tokens.service": swarmTokensService,
    "tests/swarm-test": swarmTest,
  }),
};
