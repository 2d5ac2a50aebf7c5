/** A release on a user's machine: a minimal system without Node, Bun and git. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { billFaults } from "../support/cyclonedx.ts";
import { mirrorLack, startContainer } from "./support/bare-container.ts";
import { repository } from "./support/executable.ts";
import { readmeExample } from "./support/readme.ts";
import type { ReleaseFolder } from "./support/release.ts";
import { copyLinked, everythingIn, flippedBit, makeRelease } from "./support/release.ts";
import { shell, tryShell } from "./support/shell.ts";

const made: ReleaseFolder[] = [];
const release = (): ReleaseFolder => made[0]!;
beforeAll(async () => {
  made.push(
    await makeRelease(["--platform", "linux-x64", "--platform", "linux-arm64"], {}, "linux-arm64"),
  );
}, 3_600_000);
afterAll(async () => {
  for (const each of made) await each[Symbol.asyncDispose]();
});

const address = (): string => `${release().downloadRoot}/${release().tag}`;
const platform = `${process.platform}-${process.arch}`;
/** Everything in /usr/local, /tmp and the home folder, and the lines that README examples leave in their own folder. */
const census = "find /usr/local /root /tmp | sort";

/** Runs `install.sh` of the release here, with a prefix in a folder of its own. */
const install = (prefix: string, more = ""): ReturnType<typeof tryShell> =>
  tryShell(`sh "$0/install.sh" --prefix "$1" ${more}`, [release().files, prefix], release().folder);

const noMirror = await mirrorLack();
const bareSystem = noMirror ?? "in Debian's smallest system";

// Shows R14.
test.skipIf(noMirror !== undefined)(
  `the README's instructions install, and uninstalling leaves nothing (${bareSystem})`,
  async () => {
    await using container = await startContainer(release().folder);
    const lacking =
      "for each in node bun git curl xz ssh-keygen; do ! command -v $each || exit 1; done; mkdir /work";
    expect((await container.run(lacking)).status).toBe(0);
    expect((await container.run(await readmeExample("needs"))).status).toBe(0);
    const bare = await container.run(census);
    const environment = { RELEASE: address() };
    const installed = await container.run(
      `cd /work\n${await readmeExample("install")}`,
      environment,
    );
    expect(installed.output).toContain("/usr/local/bin/cluster-cloud\n");
    expect(installed.output).not.toContain("not verified");
    expect(installed.status).toBe(0);
    const used = await container.run(`
    cluster-cloud --version
    grep '^.TH' /usr/local/share/man/man1/cluster-cloud.1
    bash -c '. /usr/local/share/bash-completion/completions/cluster-cloud; complete -p cluster-cloud'
    test -s /usr/local/share/zsh/site-functions/_cluster-cloud
    test -s /usr/local/share/fish/vendor_completions.d/cluster-cloud.fish`);
    expect(used.output.split("\n")).toEqual([
      release().tag,
      expect.stringContaining(`"cluster\\-cloud ${release().tag}"`),
      expect.stringContaining("complete -o"),
      "",
    ]);
    const verified = await container.run(`cd /work\n${await readmeExample("verify")}`, environment);
    expect(verified.output).toContain(
      'Good "cluster-e2e-release" signature for cluster-e2e with ED25519 key',
    );
    const removed = await container.run(`cd /work\n${await readmeExample("uninstall")}`);
    expect(removed.status).toBe(0);
    expect((await container.run(census)).output).toBe(bare.output);
  },
);

// Shows R14.
test.skipIf(noMirror !== undefined)(
  `the README's recipe for CI runners ends with a program that runs (${bareSystem})`,
  async () => {
    await using container = await startContainer(release().folder);
    await container.run(
      "apt-get -qq update && apt-get -qq install --yes --no-install-recommends ca-certificates curl",
    );
    const { status, output } = await container.run(await readmeExample("ci"), {
      RELEASE: address(),
      HOME: "/root",
    });
    expect({ status, output }).toEqual({
      status: 0,
      output: `cluster-cloud-linux-x64: OK\n${release().tag}\n`,
    });
  },
);

test("where there is neither xz nor ssh-keygen, the programs come one by one, and the missing signature check is said", async () => {
  await using container = await startContainer(release().folder);
  const line = `sh '${release().files}/install.sh'`;
  const { status, output } = await container.run(
    `${line} --from '${release().files}'; cluster-cloud --version`,
  );
  expect(output).toContain(
    "the signature is not verified, because there is no ssh-keygen (8.2 or later)",
  );
  expect(output).toContain("the programs need ssh, which is missing: install the OpenSSH client");
  expect(output).toEndWith(`${release().tag}\n`);
  expect(status).toBe(0);
  const refused = await container.run(`${line} --from '${release().files}' --require-signature`);
  expect(refused.status).toBe(1);
  const unreached = await container.run(line);
  expect(unreached.output).toContain(
    "cannot download without curl: install it, or download the files of",
  );
  const full = await container.run(`${line} --from '${release().files}' --prefix /small/here`);
  expect(full.output).toContain("No space left on device");
  expect(full.status).toBe(1);
  expect((await container.run("ls -A /small; find /tmp -name 'cluster-e2e-install*'")).output).toBe(
    "",
  );
});

test("a file with one bit flipped is refused, whichever it is, and nothing is installed", async () => {
  const prefix = join(release().folder, "flipped");
  const names = await readdir(release().files);
  expect(names.length).toBeGreaterThanOrEqual(15);
  for (const name of names) {
    const verify = name.startsWith("SHA256SUMS")
      ? "ssh-keygen -Y verify -f allowed_signers -I cluster-e2e -n cluster-e2e-release -s SHA256SUMS.sig <SHA256SUMS"
      : 'grep " $0\\$" SHA256SUMS | sha256sum --check';
    const isRight = async (): Promise<boolean> =>
      (await tryShell(verify, [name], release().files)).status === 0;
    expect([name, await isRight()]).toEqual([name, true]);
    await using _flipped = await flippedBit(join(release().files, name));
    expect([name, await isRight()]).toEqual([name, false]);
    const isInstalled =
      name === "SHA256SUMS" || name === "SHA256SUMS.sig" || name.endsWith(`-${platform}.tar.xz`);
    if (!isInstalled) continue;
    const { status, output } = await install(prefix);
    expect([name, status, output]).toEqual([
      name,
      1,
      expect.stringMatching(
        /signature of SHA256SUMS is invalid|SHA256SUMS has other checksums|does not match SHA256SUMS/,
      ),
    ]);
    expect(await everythingIn(prefix)).toEqual([]);
  }
});

test("a release that calls itself another is refused, and what was there stays", async () => {
  const prefix = join(release().folder, "kept");
  expect((await install(prefix)).status).toBe(0);
  const before = await everythingIn(prefix);
  const other = await install(prefix, `--version 2020.01.01.0 --from '${release().files}'`);
  expect(other.status).toBe(1);
  expect(other.output).toContain("SHA256SUMS does not list cluster-e2e-2020.01.01.0-");
  const earlier = "2020.01.01.0";
  // Scripts stand in for the programs: what they print is all that the installer asks, and they take no minute to pack.
  await shell(
    `cp -r "$0" other && cd other && rm SHA256SUMS SHA256SUMS.sig && sed -i "s/^signer=.*/signer=''/" install.sh
      for file in cluster-e2e-$1*; do mv "$file" "$(echo "$file" | sed "s/$1/$2/")"; done
      tar -xJf "cluster-e2e-$2-$3.tar.xz" && mv "cluster-e2e-$1-$3" "cluster-e2e-$2-$3"
      for program in "cluster-e2e-$2-$3"/bin/*; do printf '#!/bin/sh\necho %s\n' "$1" >"$program"; done
      tar -cJf "cluster-e2e-$2-$3.tar.xz" "cluster-e2e-$2-$3"
      rm -r "cluster-e2e-$2-$3" && sha256sum * >SHA256SUMS`,
    [release().files, release().tag, earlier, platform],
    release().folder,
  );
  const renamed = await tryShell(
    'sh other/install.sh --from other --version 2020.01.01.0 --prefix "$0"',
    [prefix],
    release().folder,
  );
  expect(renamed.output).toContain(
    `cluster-cloud belongs to release ${release().tag}, not ${earlier}`,
  );
  expect(renamed.status).toBe(1);
  expect(await everythingIn(prefix)).toEqual(before);
  expect(await shell('"$0/bin/cluster-cloud" --version', [prefix], "/")).toBe(`${release().tag}\n`);
  // An upgrade over an installation, and its removal, leave nothing either.
  expect((await install(prefix)).status).toBe(0);
  expect(await everythingIn(prefix)).toEqual(before);
  expect((await install(prefix, "--uninstall")).status).toBe(0);
  expect(await everythingIn(prefix)).toEqual([]);
});

test("what cannot be placed leaves what was there", async () => {
  const prefix = join(release().folder, "half");
  await shell(
    'mkdir -p "$0/bin" "$0/share" && echo old >"$0/bin/cluster-cloud" && echo >"$0/share/zsh"',
    [prefix],
    "/",
  );
  const before = await everythingIn(prefix);
  const { status, output } = await install(prefix);
  expect(output).toContain("restoring the previous files");
  expect(status).toBe(1);
  expect(await everythingIn(prefix)).toEqual(before);
  expect(await Bun.file(join(prefix, "bin", "cluster-cloud")).text()).toBe("old\n");
});

test("the executables need no newer C library than 2.17, and carry no path of the machine that built them", async () => {
  for (const name of (await readdir(release().files)).filter((each) =>
    /^cluster-[a-z]+-linux-/.test(each),
  )) {
    const path = join(release().files, name);
    const versions = await shell(
      "grep -aoE 'GLIBC_[0-9.]+' \"$0\" | sort -uV | tail -n 1",
      [path],
      "/",
    );
    expect([name, versions]).toEqual([name, "GLIBC_2.17\n"]);
    const bytes = Buffer.from(await Bun.file(path).bytes());
    expect([name, bytes.includes(basename(release().folder))]).toEqual([name, false]);
    // The cloud's SDK is in the program for the cloud alone.
    expect([name, bytes.includes("AmazonEC2")]).toEqual([name, name.startsWith("cluster-cloud-")]);
  }
});

test("the bill of materials is what the schema of CycloneDX asks for", async () => {
  const text = await Bun.file(
    join(release().files, `cluster-e2e-${release().tag}.cdx.json`),
  ).text();
  expect(await billFaults(text)).toBeNull();
});

const emulated = "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1";
const lack =
  Bun.which("qemu-aarch64-static") === null || !existsSync(emulated)
    ? "qemu for ARM is not here"
    : undefined;

test.skipIf(lack !== undefined)(
  `the executables for ARM start (${lack ?? "under qemu"})`,
  async () => {
    const names = (await readdir(release().files)).filter((each) =>
      /^cluster-[a-z]+-linux-arm64$/.test(each),
    );
    expect(names).not.toEqual([]);
    for (const name of names) {
      const line = 'qemu-aarch64-static -L /usr/aarch64-linux-gnu "$0" --version';
      expect(await shell(line, [join(release().files, name)], "/")).toBe(`${release().tag}\n`);
    }
  },
);

test("the same sources give the same bytes, whichever folder they lie in", async () => {
  const build = `cd "$1" && rm -rf dist && "$0" run scripts/build.ts >/dev/null && cd dist && sha256sum cluster-*`;
  const [one, two] = ["one", join("somewhere", "else")].map(async (name) => {
    const folder = join(release().folder, name);
    await copyLinked(release().checkout, folder);
    return shell(build, [process.execPath, folder], "/");
  });
  expect(await one!).toMatch(/^[0-9a-f]{64} {2}cluster-/);
  expect(await two!).toBe(await one!);
});

test("a checkout with a change, or that a check finds fault with, is not released", async () => {
  const line = '"$0" run release --dry-run --url http://127.0.0.1 --repository http://127.0.0.1';
  const change = join(release().checkout, "src", "new.ts");
  await Bun.write(change, "export const unused = 1;\n");
  const dirty = await tryShell(line, [process.execPath], release().checkout);
  expect(dirty).toMatchObject({ status: 1, output: expect.stringContaining("?? src/new.ts") });
  // The checkout that the release was made from has no checks.
  const checks = join("scripts", "check.ts");
  await Bun.write(join(release().checkout, checks), Bun.file(join(repository, checks)));
  await shell("git add -A && git commit -qm 'Add what nobody uses'", [], release().checkout);
  const { status, output } = await tryShell(line, [process.execPath], release().checkout);
  expect(status).toBe(1);
  expect(output).toContain("`bun run check` fails");
  const failed = output.match(/^FAIL +\S.*?(?= +[0-9])/gm)?.toSorted();
  expect(failed).toEqual(["FAIL  rules", "FAIL  unused code"]);
  await shell("git reset -q --hard HEAD~1", [], release().checkout);
});
