/** Nodes whose image attacks the first login. What one node knows must not give access to another. */
import { expect, test } from "bun:test";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { shell } from "./support/shell.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);

interface HostileImage extends AsyncDisposable {
  readonly name: string;
}

/** The usual image with these files above it, by absolute path; all are programs. */
async function buildHostileImage(
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<HostileImage> {
  const folder = join(containers().folder, name);
  for (const [path, text] of Object.entries(files))
    await Bun.write(join(folder, "root", path), text);
  const unit =
    "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/attack\n[Install]\nRequiredBy=ssh.service\n";
  await Bun.write(
    join(folder, "root/etc/systemd/system/attack.service"),
    `[Unit]\nBefore=ssh.service\n${unit}`,
  );
  const lines = [
    "COPY root /",
    "RUN chmod 755 /usr/local/bin/* /usr/local/sbin/*; systemctl enable attack.service",
  ];
  await Bun.write(join(folder, "Dockerfile"), [`FROM ${nodeImage}`, ...lines, ""].join("\n"));
  const image = `localhost/${containers().id(name)}`;
  await shell('docker build --quiet --tag "$0" "$1"', [image, folder], "/");
  return {
    name: image,
    [Symbol.asyncDispose]: async () => {
      await shell('docker image rm --force "$0"', [image], "/");
    },
  };
}

/** Creates a cluster whose nodes share a folder that the attack writes to. */
async function create(
  image: HostileImage,
  name: string,
  agents: number,
): Promise<{ ran: Ended; shared: string }> {
  const shared = join(containers().folder, `${name}-shared`);
  await mkdir(shared);
  const counts = ["--masters", "1", "--agents", String(agents), "--public-agents", "0"];
  const from = [
    "--variant",
    "oss",
    "--node-image",
    image.name,
    "--custom-volume",
    `${shared}:/shared`,
  ];
  const ran = await containers().run([
    "create",
    ...from,
    ...counts,
    "-c",
    containers().id(name),
    artifact(),
  ]);
  return { ran, shared };
}

const contents = async (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");

// Shows R126.
test("a host key that an agent booted with doesn't open the login to the master", async () => {
  const attack = `#!/bin/sh
cd /etc/ssh
case $(hostname) in
agent-0) cp ssh_host_ed25519_key ssh_host_ed25519_key.pub /shared && touch /shared/stolen ;;
master-0)
  until [ -e /shared/stolen ]; do sleep 0.1; done
  rm -f ssh_host_*
  cp /shared/ssh_host_ed25519_key* .
  ;;
esac
`;
  const sshrc = "hostname >>/shared/logins\n";
  await using image = await buildHostileImage("impostor", {
    "usr/local/sbin/attack": attack,
    "etc/ssh/sshrc": sshrc,
  });
  const { ran, shared } = await create(image, "impostor", 1);
  expect(await contents(join(shared, "stolen"))).toBe("");
  expect(await contents(join(shared, "logins"))).not.toContain("master-0");
  expect(ran).toMatchObject({ status: 1, stdout: "" });
  expect(ran.stderr).toMatch(
    /master_0 .* presented a host key other than the pinned one.*\[host-key-changed\]/s,
  );
  expect(await containers().things(containers().id("impostor"))).toEqual([]);
});
