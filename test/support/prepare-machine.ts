import { chmod, lchown, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Layout } from "../../src/platform/layouts/layout.ts";
import { dcosLayout } from "../../src/platform/layouts/dcos.ts";
import { prepareScript } from "../../src/platform/install/prepare/prepare-node.ts";
import { completeScript } from "../../src/platform/install/phase.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { intoFolder } from "./install-machine.ts";

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runShell(
  argv: readonly string[],
  stdin: string,
  environment: Record<string, string> | undefined,
): Promise<Ended> {
  const child = Bun.spawn([...argv], {
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
    ...(environment && { env: environment }),
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status: await child.exited, stdout, stderr };
}

export interface Family {
  readonly name: string;
  readonly osRelease: string;
  readonly managers: readonly string[];
  /** Programs that are already installed. */
  readonly present?: readonly string[];
  readonly expected: readonly string[];
  /** A program that is missing from its package. */
  readonly lost?: string;
  /** How often the first package manager fails, and its message. */
  readonly failures?: { readonly count: number; readonly word: string };
}

const harmless = "sh sed grep cut tr tail head cat mktemp rm ln date mkdir wc setpriv".split(" ");

export interface Prepared extends Ended {
  readonly calls: readonly string[];
  readonly repository: string;
  /** The content of `reads` afterwards. */
  readonly files: Readonly<Record<string, string>>;
}

interface PrepareRequest {
  /** Default: that of DC/OS. */
  readonly layout?: Layout;
  /** Separated by commas. Default: none. */
  readonly conditions?: string;
  readonly isContainer?: boolean;
  /** Further programs. `@` in them is replaced by the folder that represents `/`. */
  readonly programs?: Readonly<Record<string, string>>;
  /** Further files, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly reads?: readonly string[];
}

const repositoryPath = "etc/yum.repos.d/CentOS-Base.repo";

/**
 * Runs the script in a folder that represents `/`, with only selected programs on its PATH. If the tests run as root, it runs as the user nobody.
 * Whatever goes wrong, it can't find a real package manager, and one couldn't change anything.
 */
export async function prepare(
  family: Family,
  needs: readonly string[],
  request: PrepareRequest = {},
): Promise<Prepared> {
  await using folder = await scratchFolder();
  const root = folder.path;
  for (const path of ["bin", "etc/yum.repos.d", "var/lib", "tmp"])
    await mkdir(join(root, path), { recursive: true });
  await writeFile(join(root, "etc/os-release"), family.osRelease);
  await writeFile(join(root, "etc/fstab"), "");
  const repository = join(root, repositoryPath);
  await writeFile(repository, centosRepository);
  const program = async (name: string, text: string): Promise<void> => {
    // Never write through a link, which leads to a program of this machine.
    await rm(join(root, "bin", name), { force: true });
    await writeFile(join(root, "bin", name), `#!${root}/bin/sh\n${text}\n`);
    await chmod(join(root, "bin", name), 0o755);
  };
  for (const name of harmless)
    await symlink(Bun.which(name) ?? `/nowhere/${name}`, join(root, "bin", name));
  await program("timeout", 'shift; exec "$@"');
  await program("sleep", "");
  const brought = needs.filter((name) => name !== family.lost);
  for (const name of [...family.managers, ...(family.present ?? [])])
    await program(
      name,
      recorder(root, name, name === family.managers[0] ? family.failures : undefined, brought),
    );
  await program(
    "systemctl",
    'case $* in --version) echo "systemd 219" ;; is-active*) exit 3 ;; esac',
  );
  for (const name of ["systemd-run", "getent", "swapoff"]) await program(name, "");
  await program("systemd-detect-virt", request.isContainer === true ? "" : "exit 1");
  for (const [name, text] of Object.entries(request.programs ?? {}))
    await program(name, text.replaceAll("@", root));
  for (const [file, text] of Object.entries(request.files ?? {}))
    await Bun.write(join(root, file), text);
  const path = `PATH=${root}/bin\n`;
  // Docker isn't started, because only a recorder of calls is installed.
  const script = intoFolder(completeScript(prepareScript(request.layout ?? dcosLayout)), root)
    .replace(`PATH=${root}/bin:/usr/bin:/bin\n`, path)
    .replace("\nstart_docker() {", "\nstart_docker() {\n  return 0");
  if (script.split("PATH=").length !== 2 || !script.includes(path))
    throw new Error("The script would leave its folder");
  const { conditions = "none" } = request;
  const argv = [
    "/bin/sh",
    "-s",
    "--",
    "e2e-prepare",
    conditions,
    `${root}/installed`,
    "Choose another.",
    ...needs,
  ];
  const ended = await runShell([...(await asNobody(root)), ...argv], script, {
    PATH: join(root, "bin"),
    TMPDIR: join(root, "tmp"),
  });
  const calls = await readFile(join(root, "calls"), "utf8").catch(() => "");
  const read = async (file: string): Promise<string> =>
    readFile(join(root, file), "utf8").catch(() => "");
  const files = Object.fromEntries(
    await Promise.all((request.reads ?? []).map(async (file) => [file, await read(file)] as const)),
  );
  return {
    ...ended,
    calls: calls.split("\n").filter(Boolean),
    repository: await read(repositoryPath),
    files,
  };
}

/** A program that only records its arguments, and creates the files that it would have fetched. */
const recorder = (
  root: string,
  name: string,
  failures: Family["failures"],
  brought: readonly string[],
): string => `
echo "${name} $*" | sed 's|${root}||' >>${root}/calls
[ "$(wc -l <${root}/calls)" -gt ${failures?.count ?? 0} ] || { echo '${failures?.word}' >&2; exit 100; }
case "$*" in *install*) for p in ${brought.join(" ")}; do [ -e ${root}/bin/$p ] || ln ${root}/bin/sleep ${root}/bin/$p; done ;; esac
case "$*" in *docker-ce.repo*) : >${root}/etc/yum.repos.d/docker-ce.repo ;; esac`;

/** The command prefix that drops root's privileges; empty if the tests don't run as root. */
async function asNobody(root: string): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const nobody = 65_534;
  for (const path of [".", ...(await readdir(root, { recursive: true }))])
    await lchown(join(root, path), nobody, nobody);
  return [
    "/usr/bin/setpriv",
    `--reuid=${nobody}`,
    `--regid=${nobody}`,
    "--clear-groups",
    "--no-new-privs",
  ];
}

const centosRepository = `[base]
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
#baseurl=http://mirror.centos.org/centos/$releasever/os/$basearch/
gpgcheck=1
`;
