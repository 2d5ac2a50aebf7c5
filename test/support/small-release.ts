/** A release of shell scripts that print a version, for tests of install.sh. */
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { installer } from "../../scripts/release/installer.ts";

const template = await Bun.file(join(import.meta.dir, "..", "..", "scripts", "install.sh")).text();
/** The platform of the tests' own computer. */
const ownPlatform = `${process.platform}-${process.arch}`;

interface SmallReleaseOptions {
  readonly signer?: string | undefined;
  readonly platform?: string;
}

/**
 * Writes it to a folder below `parent` that is named after the tag, and returns its path. `programs` are names without `cluster-`, each with the lines
 * that it runs unless it is asked for its version; none: it always prints that.
 */
export async function smallRelease(
  parent: string,
  tag: string,
  programs: Readonly<Record<string, string>>,
  { signer, platform = ownPlatform }: SmallReleaseOptions = {},
): Promise<string> {
  const files = join(parent, tag);
  const name = `cluster-e2e-${tag}-${platform}`;
  const tree = join(parent, "trees", name);
  await mkdir(join(tree, "bin"), { recursive: true });
  await mkdir(files);
  for (const [short, body] of Object.entries(programs)) {
    const program = `cluster-${short}`;
    const lines =
      body === "" ? `echo ${tag}` : `case $* in --version) echo ${tag} && exit ;; esac\n${body}`;
    await Bun.write(join(tree, "bin", program), `#!/bin/sh\n${lines}\n`);
    await Bun.write(join(tree, "share", "man", "man1", `${program}.1`), tag);
    await Bun.write(join(tree, "share", `of-${program}`, "document"), tag);
    await cp(join(tree, "bin", program), join(files, `${program}-${platform}`));
  }
  const lines = `chmod 755 "$0/bin/"*
    tar -C "$0" -czf "cluster-e2e-$1-share.tar.gz" share
    tar -C "$0/.." -cJf "$2.tar.xz" "$2"
    sha256sum *`;
  const argv = ["sh", "-euc", lines, tree, tag, name];
  const child = Bun.spawn(argv, { cwd: files, stderr: "inherit" });
  const sums = (await new Response(child.stdout).text()).trim();
  if ((await child.exited) !== 0) throw new Error("the small release could not be made");
  const script = installer(template, { release: tag, downloadRoot: parent, signer, sums });
  await Bun.write(join(files, "install.sh"), script);
  const own = new Bun.CryptoHasher("sha256").update(script).digest("hex");
  await Bun.write(join(files, "SHA256SUMS"), `${sums}\n${own}  install.sh\n`);
  return files;
}
