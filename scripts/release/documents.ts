/** What comes along with each executable, where shells and `man` look for it below a prefix. */
import { join } from "node:path";
import type { Program } from "../../src/cli/command.ts";
import { completionScript } from "../../src/cli/completion.ts";
import { manualPage } from "../../src/cli/help/help.ts";
import { manualSections } from "../../src/commands/manual-sections.ts";
import type { Entry } from "./archive.ts";

interface Edition {
  readonly version: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
}

export function documents(program: Program, edition: Edition): readonly Entry[] {
  const { name } = program;
  const entry = (path: string, text: string): Entry => ({
    name: `share/${path}`,
    from: { text },
    mode: 0o644,
  });
  return [
    entry(`man/man1/${name}.1`, manualPage(program, edition, manualSections(program))),
    entry(`bash-completion/completions/${name}`, completionScript(name, "bash")),
    entry(`zsh/site-functions/_${name}`, completionScript(name, "zsh")),
    entry(`fish/vendor_completions.d/${name}.fish`, completionScript(name, "fish")),
  ];
}

/** What comes along with every copy of the programs; the licenses have to. */
export function sharedDocuments(root: string): readonly Entry[] {
  const entry = (name: string, path: string): Entry => ({
    name: `share/doc/cluster-e2e/${name}`,
    from: { path: join(root, path) },
    mode: 0o644,
  });
  return [
    entry("LICENSE", "LICENSE"),
    entry("THIRD-PARTY-NOTICES", "src/commands/third-party-notices.txt"),
    entry("results.schema.json", "src/commands/results.schema.json"),
  ];
}
