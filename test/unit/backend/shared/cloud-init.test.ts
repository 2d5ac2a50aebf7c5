import { join } from "node:path";
import { expect, test } from "bun:test";
import { parse } from "yaml";
import { userData } from "../../../../src/backend/shared/first-boot.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const hostKey = generateKeyPair("");
const boot = {
  user: "centos",
  publicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFake somebody's \u{1F511} on: a machine\n",
  hostKey,
  deadline: new Date("2026-01-02T03:04:05.900Z"),
};

const parsed = (text: string) =>
  parse(text) as {
    readonly locale: boolean;
    readonly ssh_deletekeys: boolean;
    readonly ssh_keys: Readonly<Record<string, string>>;
    readonly users: readonly [
      string,
      { readonly name: string; readonly ssh_authorized_keys: readonly string[] },
    ];
    readonly bootcmd?: readonly (readonly string[])[];
  };

test("is cloud-config that YAML readers understand", () => {
  const text = userData(boot);
  expect(text.split("\n", 1)).toEqual(["#cloud-config"]);
  const { users, ssh_keys: keys, locale, ssh_deletekeys: deletesKeys } = parsed(text);
  // Keys of the image are known to everyone who has it.
  expect([locale, deletesKeys]).toEqual([false, true]);
  expect(keys).toEqual({
    ed25519_private: hostKey.privateKey,
    ed25519_public: hostKey.publicKey,
  });
  expect(users[0]).toBe("default");
  expect(users[1]).toMatchObject({
    name: "centos",
    sudo: ["ALL=(ALL) NOPASSWD:ALL"],
    lock_passwd: true,
  });
});

test("leaves the key's comment out, which is free text", () => {
  expect(parsed(userData(boot)).users[1].ssh_authorized_keys).toEqual([
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFake",
  ]);
});

test("is ASCII, and far under the 16 KiB that EC2 takes", () => {
  const text = userData(boot);
  expect(text).toMatch(/^[\n\x20-\x7e]*$/);
  expect(text.length).toBeLessThan(8 * 1024);
});

test("sets the deadline up in bootcmd, as an absolute second", () => {
  const [command] = parsed(userData(boot)).bootcmd ?? [];
  expect(command?.slice(0, 2)).toEqual(["sh", "-c"]);
  expect(command?.[2]).toContain(
    `cluster-e2e-deadline ${Date.parse("2026-01-02T03:04:05Z") / 1000}\n`,
  );
});

test("the deadline's script is one that sh accepts", async () => {
  const [command] = parsed(userData(boot)).bootcmd ?? [];
  const check = Bun.spawn(["sh", "-n", "-c", command?.[2] ?? "exit 1"], { stderr: "pipe" });
  expect(await new Response(check.stderr).text()).toBe("");
  expect(await check.exited).toBe(0);
});

test("has no deadline where machines live on", () => {
  expect(parsed(userData({ ...boot, deadline: undefined })).bootcmd).toBeUndefined();
});

test("writes the names of other machines once, however often the machine boots", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "hosts");
  await Bun.write(file, "127.0.0.1 localhost\n10.93.0.2 master-0\n");
  const hosts = [
    { address: "10.93.0.2", name: "master-0" },
    { address: "10.93.0.3", name: "agent-0" },
  ];
  const { bootcmd } = parsed(userData({ ...boot, deadline: undefined, hosts }));
  const script = bootcmd?.[0]?.[2]?.replaceAll("/etc/hosts", file) ?? "exit 1";
  for (let boots = 1; boots <= 2; boots += 1) await Bun.$`sh -c ${script}`;
  expect(await Bun.file(file).text()).toBe(
    "127.0.0.1 localhost\n10.93.0.2 master-0\n10.93.0.3 agent-0\n",
  );
});

test("lets the login user's part of systemd stay where that was asked for", () => {
  const commandsOf = (lingers: boolean) =>
    (parsed(userData({ ...boot, deadline: undefined, lingers })).bootcmd ?? []).map(
      (words) => words[2],
    );
  expect(commandsOf(true)).toEqual([
    "mkdir -p /var/lib/systemd/linger && : >/var/lib/systemd/linger/centos",
  ]);
  expect(commandsOf(false)).toEqual([]);
});

test("a machine without a first host key generates one, and one whose hosts are given keeps them", () => {
  const plain = parse(userData(boot)) as object;
  for (const key of ["ssh_genkeytypes", "manage_etc_hosts"]) expect(plain).not.toHaveProperty(key);
  const hosts = [{ address: "10.93.0.2", name: "master-0" }];
  const text = userData({ ...boot, hostKey: undefined, hosts });
  expect(parse(text)).toMatchObject({ ssh_genkeytypes: ["ed25519"], manage_etc_hosts: false });
  expect(text).not.toContain("ssh_keys");
});

test("only scripts that are given run at each boot, and no empty list of hosts is written", () => {
  const bare = { ...boot, deadline: undefined };
  expect(parsed(userData({ ...bare, hosts: [] })).bootcmd).toBeUndefined();
  expect(parsed(userData({ ...bare, scripts: ["mount /data"] })).bootcmd).toEqual([
    ["sh", "-c", "mount /data"],
  ]);
});
