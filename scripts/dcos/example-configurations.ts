import {
  baseConfiguration,
  mergeConfiguration,
} from "../../src/platform/configuration/configuration.ts";
import type { Configuration } from "../../src/platform/configuration/configuration.ts";
import { dcosLayout } from "../../src/platform/layouts/dcos.ts";

interface Example {
  readonly name: string;
  readonly configuration: Configuration;
}

/** What we would write for an open source release, for several clusters. (The enterprise variant's generator is not public.) */
export function exampleConfigurations(release: string): readonly Example[] {
  const extra = {
    dns_search: "example.com",
    check_time: true,
    telemetry_enabled: false,
    unknown_key: "kept",
  };
  return [
    {
      name: "1/1/1",
      configuration: configurationOf(release, { masters: 1, agents: 1, publicAgents: 1 }),
    },
    {
      name: "3/2/1",
      configuration: configurationOf(release, { masters: 3, agents: 2, publicAgents: 1 }),
    },
    {
      name: "no public agents",
      configuration: configurationOf(release, { masters: 1, agents: 1, publicAgents: 0 }),
    },
    {
      name: "extra configuration",
      configuration: mergeConfiguration(
        configurationOf(release, { masters: 1, agents: 1, publicAgents: 1 }),
        extra,
        undefined,
      ),
    },
    {
      name: "ip-detect-public",
      configuration: configurationOf(release, {
        masters: 1,
        agents: 1,
        publicAgents: 1,
        detector: "genconf/ip-detect-public",
      }),
    },
  ];
}

interface Shape {
  readonly masters: number;
  readonly agents: number;
  readonly publicAgents: number;
  readonly detector?: string;
}

function configurationOf(
  release: string,
  { masters, agents, publicAgents, detector }: Shape,
): Configuration {
  const roles = [
    ...Array.from({ length: masters }, () => "master" as const),
    ...Array.from({ length: agents }, () => "agent" as const),
    ...Array.from({ length: publicAgents }, () => "public_agent" as const),
  ];
  const base = baseConfiguration({
    clusterName: "example",
    variant: "oss",
    nodes: roles.map((role, index) => ({ role, privateAddress: `10.0.0.${index + 1}` })),
    bootstrapUrl: "http://10.0.0.1:18080",
    resolvers: ["10.0.0.53"],
    ipDetectPublicFile: detector,
    licenseKey: undefined,
  });
  return {
    ...base,
    ...dcosLayout.baseConfiguration({ variant: "oss", release, nodesKeepTime: false }),
  };
}
