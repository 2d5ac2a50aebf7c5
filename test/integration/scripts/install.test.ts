/** Failures of install.sh. test/e2e/release.test.ts tests its success, with real programs. */
import { expect, test } from "bun:test";
import { chmod, readdir, symlink } from "node:fs/promises";
import { installed, newer, older, place, platform } from "./install-place.ts";
import { until } from "../../support/until.ts";

const signingKey = "ssh-ed25519 AAAA";
const common =
  "sh bash uname mktemp mkdir rm rmdir mv cp ln readlink sed grep tar gzip find sort tr chmod dirname cat";

test("an upgrade leaves nothing of the older release, and a removal leaves nothing at all", async () => {
  await using here = await place();
  await here.sh(installed(newer));
  const fresh = await here.census();
  await here.sh(`${installed(newer)} --uninstall`);
  expect(await here.census()).toBe("");
  expect((await here.sh(installed(older))).output).toContain("/prefix/bin/cluster-older\n");
  expect((await here.sh("prefix/bin/cluster-cloud")).output).toBe(`${older}\n`);
  expect(await here.sh(installed(newer))).toMatchObject({ status: 0 });
  expect((await here.sh("prefix/bin/cluster-cloud")).output).toBe(`${newer}\n`);
  expect((await here.census()).replaceAll(/^folder .*\n/gm, "")).toBe(
    fresh.replaceAll(/^folder .*\n/gm, ""),
  );
  await here.sh(`${installed(older)} --uninstall`);
  expect(await here.census()).toBe("");
});

test.each(["INT", "TERM"])(
  "SIG%s at any move leaves the older release as it was, and the next attempt succeeds",
  async (signal) => {
    await using here = await place();
    await here.sh(installed(older));
    const before = await here.census();
    const mv = Bun.which("mv")!;
    await here.program(
      "mv",
      `${mv} "$@"; echo >>moves; [ "$(wc -l <moves)" != "$AT" ] || kill -${signal} $PPID`,
    );
    const interrupted = { INT: 130, TERM: 143 }[signal];
    for (let at = 1; ; at += 1) {
      const { status } = await here.sh(`rm -f moves; ${installed(newer)}`, { AT: String(at) });
      if (status === 0) {
        // Moves: the tree, two times four files, and the two lists.
        expect(at).toBeGreaterThan(10);
        break;
      }
      expect([at, status, await here.census()]).toEqual([at, interrupted, before]);
    }
    expect((await here.sh("prefix/bin/cluster-cloud")).output).toBe(`${newer}\n`);
  },
);

test("after an installation was killed at any move, the next one or a removal finds nothing of it in the way", async () => {
  await using here = await place();
  await here.sh(`${installed(older)}; ${installed(newer)}`);
  const expected = await here.census();
  const mv = Bun.which("mv")!;
  await here.program(
    "mv",
    `${mv} "$@"; echo >>moves; [ "$(wc -l <moves)" != "$AT" ] || kill -KILL $PPID`,
  );
  for (let at = 1; ; at += 3) {
    await here.sh(`rm -rf prefix; ${installed(older)}`);
    const { status } = await here.sh(`rm -f moves; ${installed(newer)}`, { AT: String(at) });
    if (status === 0) {
      expect(at).toBeGreaterThan(10);
      break;
    }
    await here.sh("rm -rf tmp/*");
    const next = await here.sh(installed(newer));
    expect([at, status, next.status, await here.census()]).toEqual([at, 137, 0, expected]);
    await here.sh(`rm -f moves; ${installed(older)}`, { AT: String(at) });
    await here.sh(`rm -rf tmp/*; ${installed(newer)} --uninstall`);
    expect([at, await here.census()]).toEqual([at, ""]);
  }
});

test("the holder of a lock is the same process in any time zone and language, also where there is no /proc", async () => {
  await using here = await place();
  const script = await Bun.file(here.at(newer, "install.sh")).text();
  const started = /^started\(\) \{.*?^\}\n/ms.exec(script)![0].replace("-e /proc/self/stat", "");
  const lines = `${started}started $PPID`;
  const times = ["Asia/Tokyo", "UTC"].map(async (TZ) => here.sh(lines, { TZ, LC_ALL: "" }));
  const [one, other] = await Promise.all(times);
  expect(one!.output).toMatch(/^[A-Z][a-z]{2}-[A-Z][a-z]{2}-/);
  expect(other).toEqual(one);
});

test("a system of 32 bits on a kernel of 64 is refused", async () => {
  await using here = await place();
  await here.program("getconf", "echo 32");
  const { status, output } = await here.sh(installed(newer));
  expect([status, output]).toEqual([1, expect.stringContaining("this system is one of 32 bits")]);
  expect(await here.census()).toBe("");
});

test("a lock whose holder cannot be seen from here is respected", async () => {
  await using here = await place();
  for (const holder of ["another-computer:1:1", "no-holder", ""]) {
    await here.sh(`mkdir -p prefix; ln -sf "${holder || "x"}" prefix/.cluster-e2e-lock`);
    const { status, output } = await here.sh(installed(newer));
    expect([status, output]).toEqual([1, expect.stringContaining("If not, remove ")]);
  }
  expect((await here.sh("ls prefix")).output).toBe("");
});

test("of two concurrent installations, one is rejected before it changes anything", async () => {
  await using here = await place();
  await here.sh(installed(older));
  const mv = Bun.which("mv")!;
  await here.program(
    "mv",
    `${mv} "$@"; [ -z "\${WAITS-}" ] || { : >reached; while [ ! -e continue ]; do sleep 0.05; done; }`,
  );
  const living = here.sh(installed(newer), { WAITS: "yes" });
  await until("the first has moved a file", async () => Bun.file(here.at("reached")).exists());
  for (const line of [installed(newer), `${installed(older)} --uninstall`]) {
    const { status, output } = await here.sh(line);
    expect(output).toContain("another installation or removal is running there (");
    expect(status).toBe(1);
  }
  await Bun.write(here.at("continue"), "");
  expect(await living).toMatchObject({ status: 0 });
  expect((await here.sh("prefix/bin/cluster-vm")).output).toBe(`${newer}\n`);
  await here.sh(`${installed(older)} --uninstall`);
  expect(await here.census()).toBe("");
  await here.sh(`${installed(newer)} >one & ${installed(newer)} >two; wait`);
  expect((await here.sh("prefix/bin/cluster-cloud; prefix/bin/cluster-vm")).output).toBe(
    `${newer}\n${newer}\n`,
  );
  // The rejected one may have created the prefix, which the other then doesn't remove.
  await here.sh(`${installed(newer)} --uninstall; [ ! -d prefix ] || rmdir prefix`);
  expect(await here.census()).toBe("");
});

/** What someone adds to the list of what is installed, which names what a removal and an upgrade remove. */
const foreign = [
  "file ../foreign",
  "file bin/../../foreign",
  "file share/linked/foreign",
  "file ./foreign",
  "file foreign",
];

test.each([...foreign, "folder $PWD/empty", "folder $PWD/prefix/bin/../../empty"])(
  "a list with %p is refused, and nothing is moved or removed",
  async (line) => {
    await using here = await place();
    await here.sh(
      `${installed(older)}; mkdir outside empty; ln -s ../../outside prefix/share/linked`,
    );
    await here.sh("for file in . outside prefix; do echo mine >$file/foreign; done");
    await here.sh(`echo "${line}" >>prefix/share/cluster-e2e/installed`);
    const before = await here.census();
    for (const command of [`${installed(older)} --uninstall`, installed(newer)]) {
      const { status, output } = await here.sh(command);
      expect([status, output]).toEqual([
        1,
        expect.stringContaining(", which this script never installs: "),
      ]);
      expect(await here.census()).toBe(before);
      expect(
        (await here.sh("cat foreign outside/foreign prefix/foreign; ls -d empty")).output,
      ).toBe("mine\nmine\nmine\nempty\n");
    }
  },
);

test("folders that the user has replaced by links are installed to and removed from", async () => {
  await using here = await place();
  await here.sh("mkdir -p prefix elsewhere; ln -s ../elsewhere prefix/bin");
  await here.sh(installed(older));
  expect((await here.sh("prefix/bin/cluster-cloud; ls elsewhere")).output).toContain(
    `${older}\ncluster-cloud`,
  );
  expect(await here.sh(`${installed(older)} --uninstall; ls elsewhere`)).toMatchObject({
    status: 0,
  });
  expect((await here.sh("ls elsewhere")).output).toBe("");
});

test.each([
  [
    "another program in place of one",
    (tag: string) => `echo evil >>${tag}/cluster-cloud-${platform}`,
  ],
  [
    "an archive with another program",
    (tag: string) => `cp ${tag}/cluster-e2e-${tag}-share.tar.gz ${tag}/*.tar.xz`,
  ],
  [
    "one more program",
    (tag: string) => `cp ${tag}/cluster-cloud-${platform} ${tag}/cluster-evil-${platform}`,
  ],
])("without ssh-keygen, a release with %s and sums to match is refused", async (_, change) => {
  await using here = await place(signingKey);
  const tools = `${common} xz sha256sum`.split(" ");
  for (const tool of tools) await symlink(Bun.which(tool)!, here.at("bin", tool));
  await here.sh(
    `${change(newer)}; cd ${newer}; rm SHA256SUMS; sha256sum * >../sums; mv ../sums SHA256SUMS`,
  );
  const ended = await here.sh(installed(newer), { PATH: here.at("bin") });
  expect([ended.status, ended.output]).toEqual([
    1,
    expect.stringContaining("has other checksums than this script"),
  ]);
  expect(await here.census()).toBe("");
});

test("without ssh-keygen, a signed release is installed by its own script only", async () => {
  await using here = await place(signingKey);
  for (const tool of `${common} xz sha256sum`.split(" "))
    await symlink(Bun.which(tool)!, here.at("bin", tool));
  const environment = { PATH: here.at("bin") };
  const other = await here.sh(
    `sh ${newer}/install.sh --prefix prefix --version ${older}`,
    environment,
  );
  expect([other.status, other.output]).toEqual([
    1,
    expect.stringContaining("there is no ssh-keygen (8.2 or later): "),
  ]);
  expect(await here.census()).toBe("");
  expect(await here.sh(installed(older), environment)).toMatchObject({ status: 0 });
});

test.skipIf(process.getuid?.() !== 0)(
  "an error says that the prefix is not writable, before anything is downloaded",
  async () => {
    await using here = await place();
    await here.sh("chmod 755 . && chmod 777 tmp && mkdir -p prefix/bin other");
    await here.program("curl", "echo curl was run");
    const user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    for (const [made, folder] of [
      ["prefix", "prefix"],
      ["prefix/deeper", "prefix"],
      ["other", "other"],
    ]) {
      const { status, output } = await here.sh(
        `${user} sh ${newer}/install.sh --from https://127.0.0.1:1 --prefix ${made}`,
      );
      expect(output).toBe(
        `install.sh: cannot write to ${here.at(folder!)}: run this with sudo, or pass --prefix "$HOME/.local"\n`,
      );
      expect(status).toBe(1);
    }
    await here.sh("chmod 777 prefix");
    const bin = await here.sh(`${user} ${installed(newer)}`);
    expect(bin.output).toContain("prefix/bin: run this with sudo");
    expect((await here.census()).trim()).toBe(".\n./bin");
  },
);

test("an interrupted download, of the script or of an archive, installs nothing", async () => {
  await using here = await place();
  const bytes = Buffer.from(await Bun.file(here.at(newer, "install.sh")).arrayBuffer());
  for (let end = bytes.length - 2; end > 0; end -= 500) {
    await Bun.write(here.at("cut.sh"), bytes.subarray(0, end));
    await here.sh("sh cut.sh --prefix prefix");
    expect([end, await here.census()]).toEqual([end, ""]);
  }
  using server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data: async (socket, request) => {
        const name = /\/([^/ ]+) HTTP/.exec(request.toString())?.[1] ?? "";
        const file = Buffer.from(await Bun.file(here.at(newer, name)).arrayBuffer());
        const length = name.endsWith(".xz") ? file.length + 1000 : file.length;
        socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`);
        socket.end(file);
      },
    },
  });
  const { status, output } = await here.sh(
    `${installed(newer)} --from http://127.0.0.1:${server.port}`,
  );
  expect(output).toContain(".tar.xz\n");
  expect(output).toMatch(/install.sh: cannot download http:.*\.tar\.xz\n$/);
  expect([status, await here.census()]).toEqual([1, ""]);
});

test.each([
  ["sha256sum", "xz sha256sum", 0, ""],
  ["shasum, as on a Mac", "xz shasum", 0, ""],
  ["openssl", "xz openssl", 0, ""],
  [
    "nothing",
    "xz",
    1,
    "cannot verify checksums without sha256sum, shasum or openssl: install one of them",
  ],
  ["sha256sum, without xz", "sha256sum", 0, ""],
])("in bash, with %s for the checksums", async (_, tools, status, message) => {
  await using here = await place();
  for (const tool of `${common} ${tools}`.split(" "))
    await symlink(Bun.which(tool)!, here.at("bin", tool));
  const ended = await here.sh(`bash --posix ${newer}/install.sh --prefix prefix`, {
    PATH: here.at("bin"),
  });
  expect(ended.output).toContain(message);
  expect(ended.status).toBe(status);
  const said = await here.sh("prefix/bin/cluster-cloud || :");
  if (status === 0) expect(said.output).toBe(`${newer}\n`);
  else expect(await here.census()).toBe("");
});

test("a warning says what prevents the user's shell from finding the programs", async () => {
  await using here = await place();
  await here.program("cluster-vm", "echo another");
  await chmod(here.at(newer, "install.sh"), 0o755);
  const after = await here.sh(`PATH=$PATH:${here.prefix}/bin ${newer}/install.sh --prefix prefix`);
  expect(after.output).toContain(
    `install.sh: cluster-vm still runs ${here.at("bin", "cluster-vm")}: remove that file, or put ${here.prefix}/bin before its folder on your PATH\n`,
  );
  expect(after.output).not.toContain("cluster-cloud still");
  const without = await here.sh(`${newer}/install.sh --prefix prefix`);
  expect(without.output).toContain(
    `${here.prefix}/bin is not on your PATH. Add this line to your shell's profile:  export PATH="`,
  );
  const before = await here.sh(`PATH=${here.prefix}/bin:$PATH ${newer}/install.sh --prefix prefix`);
  expect(before.output).not.toMatch(/still|is not on/);
});

test("without curl nothing is downloaded: wget follows redirects from https to http", async () => {
  await using here = await place();
  for (const name of [
    "sh",
    "uname",
    "mktemp",
    "mkdir",
    "rm",
    "ln",
    "readlink",
    "sed",
    "dirname",
    "sha256sum",
    "cat",
    "find",
    "rmdir",
  ])
    await symlink(Bun.which(name)!, here.at("bin", name));
  await here.program("wget", "echo used >>wget-used; exit 1");
  const from = "--from https://127.0.0.1:1/releases";
  const ended = await here.sh(`${installed(newer)} ${from}`, { PATH: here.at("bin") });
  expect(ended.status).toBe(1);
  expect(ended.output).toContain("cannot download without curl");
  expect(ended.output).toContain("--from");
  expect(await readdir(here.path)).not.toContain("wget-used");
});

test("curl is told to use https alone for an https URL, also after redirects", async () => {
  await using here = await place();
  await here.program("curl", 'printf "%s\\n" "$@" >>curl-words; exit 1');
  await here.sh(`${installed(newer)} --from https://127.0.0.1:1/releases`);
  const words = (await Bun.file(here.at("curl-words")).text()).split("\n");
  for (const option of ["--proto", "--proto-redir"])
    expect(words[words.indexOf(option) + 1]).toBe("=https,https");
});

test.skipIf(process.platform !== "linux")(
  "where the C library is musl, the programs for musl are installed, one by one as well",
  async () => {
    await using here = await place(undefined, `${platform}-musl`);
    const others = await here.sh(installed(newer));
    expect(others.output).toEndWith(
      `release ${newer} does not support ${platform}, only: ${platform}-musl\n`,
    );
    // As Alpine's does.
    await here.program("ldd", "echo 'musl libc (x86_64)' >&2; exit 1");
    const ended = await here.sh(installed(newer));
    expect(ended.output).toContain(`cluster-e2e ${newer} for ${platform}-musl, from`);
    expect((await here.sh("prefix/bin/cluster-vm")).output).toBe(`${newer}\n`);
    for (const name of [...common.split(" "), "sha256sum", "head"])
      await symlink(Bun.which(name)!, here.at("bin", name)).catch(() => undefined);
    const withoutXz = await here.sh(installed(older), { PATH: here.at("bin") });
    expect(withoutXz).toMatchObject({ status: 0 });
    expect((await here.sh("prefix/bin/cluster-older")).output).toBe(`${older}\n`);
  },
);
