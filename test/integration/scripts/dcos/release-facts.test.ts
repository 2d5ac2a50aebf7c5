/** How scripts/check-dcos reads a release's source, with texts of the same shapes, but not from that project. */
import { describe, expect, test } from "bun:test";
import { exampleConfigurations } from "../../../../scripts/dcos/example-configurations.ts";
import { readReleaseFacts } from "../../../../scripts/dcos/release-facts.ts";

const files: Readonly<Record<string, string>> = {
  "gen/build_deploy/bash.py": `
    grep -q $(printf "%04x" $PORT)
    local v=$(docker version 2>/dev/null | awk 'x')
    check tar
    check xz
    check systemctl 200 y
    getent group nogroup
        for service in \\
            "53 names" \\
            "80 web"
        do
        for service in \\
            "5051 agent"
        do
`,
  "gen/dcos-metadata.yaml": "content:\n",
  "gen/calc.py": "{\n  'check_time': 'true',\n",
  "gen/build_deploy/bash/dcos_generate_config.sh.in": "# nothing\n",
  "packages/bootstrap/build": "lib/python3.5/site-packages\n",
  "dcos_installer/cli.py": "    add(\n        '--generate-node-upgrade-script',\n",
  "dcos_installer/upgrade.py":
    '--skip-checks\nprint("Node upgrade script URL: " + bootstrap_url + upgrade_script_path + "/x")\n',
  "packages/3dt/build": "make\n",
  "packages/metronome/build": "ExecStartPre=/opt/check-time\n",
};

describe("facts of a release", () => {
  test("are read with file and line", () => {
    expect(readReleaseFacts((path) => files[path])).toEqual({
      dockerVersion: { read: "last-line", source: "gen/build_deploy/bash.py:3" },
      programs: { names: ["tar", "xz"], source: "gen/build_deploy/bash.py:4" },
      nogroup: { isChecked: true, source: "gen/build_deploy/bash.py:7" },
      ports: { master: [53, 80], agent: [5051], source: "gen/build_deploy/bash.py:8" },
      portFormat: { format: "%04x", source: "gen/build_deploy/bash.py:2" },
      versionFileVariant: { isThere: false, source: "gen/dcos-metadata.yaml" },
      nodeCheck: { command: ["3dt", "--diag"], source: "packages/3dt/build:1" },
      timeCheck: { default: true, services: ["metronome"], source: "gen/calc.py:2" },
      bootstrapCa: undefined,
      upgrade: {
        option: "--generate-node-upgrade-script",
        linePrefix: "Node upgrade script URL: ",
        flags: ["--skip-checks"],
        isChecked: false,
        source: "dcos_installer/upgrade.py:2",
      },
      python: { name: "python3.5", source: "packages/bootstrap/build:1" },
    });
  });

  test("of a newer release differ where its source does", () => {
    const newer: Readonly<Record<string, string>> = {
      ...files,
      "gen/build_deploy/bash.py": files["gen/build_deploy/bash.py"]!.replace(
        "docker version 2>/dev/null | awk 'x'",
        "x && docker version --format y",
      ).replace("getent group nogroup", ""),
      "gen/dcos-metadata.yaml": 'content:\n  "dcos-variant": x\n',
      "gen/build_deploy/bash/dcos_generate_config.sh.in": "ca serve --address :443\n",
      "packages/dcos-check-runner/build": "make\n",
    };
    expect(readReleaseFacts((path) => newer[path])).toMatchObject({
      dockerVersion: { read: "format" },
      nogroup: { isChecked: false },
      versionFileVariant: { isThere: true, source: "gen/dcos-metadata.yaml:2" },
      nodeCheck: { command: ["dcos-check-runner", "check", "node-poststart"] },
      bootstrapCa: { port: 443 },
    });
  });

  test("that cannot be found are an error, not a guess", () => {
    expect(() => readReleaseFacts((path) => (path === "gen/calc.py" ? "" : files[path]))).toThrow(
      "gen/calc.py",
    );
    expect(() => readReleaseFacts(() => undefined)).toThrow("there is no gen/build_deploy/bash.py");
  });
});

test("a release's generator gets the same configurations as its clusters", () => {
  const examples = Object.fromEntries(
    exampleConfigurations("2.1.2").map(({ name, configuration }) => [name, configuration]),
  );
  expect(examples["3/2/1"]).toMatchObject({
    master_list: ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
    agent_list: ["10.0.0.4", "10.0.0.5"],
    public_agent_list: ["10.0.0.6"],
    check_time: false,
  });
  expect(examples["no public agents"]).toMatchObject({ public_agent_list: [] });
  expect(examples["extra configuration"]).toMatchObject({ check_time: true, unknown_key: "kept" });
  expect(examples["ip-detect-public"]).toMatchObject({
    ip_detect_public_filename: "genconf/ip-detect-public",
  });
});
