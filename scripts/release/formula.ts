/** The Homebrew formula of a release. Guide: https://docs.brew.sh/Formula-Cookbook */
import type { Platform } from "./platforms.ts";

export interface FormulaFacts {
  readonly tag: string;
  readonly description: string;
  /** Where people read about the program; also where `brew install --HEAD` clones from. */
  readonly repository: string;
  /** One for each platform of the release. */
  readonly archives: readonly Archive[];
  readonly programs: readonly string[];
}

interface Archive {
  readonly platform: Platform;
  readonly url: string;
  readonly sha256: string;
}

/**
 * Text of `cluster-e2e.rb`, as `brew style` and `brew audit --strict` want it. Homebrew does not strip; nor may we: that destroys the
 * executables.
 */
export function formula(facts: FormulaFacts): string {
  const { tag, description, repository, archives, programs } = facts;
  return `class ClusterE2e < Formula
  desc ${ruby(description)}
  homepage ${ruby(repository.replace(/\.git$/, ""))}
  version ${ruby(tag)}
  license "Apache-2.0"

  head do
    url ${ruby(repository)},${repository.endsWith(".git") ? "" : " using: :git,"} branch: "main"
  end

${system(
  "macos",
  archives.filter(({ platform }) => platform.os === "darwin"),
)}
${system(
  "linux",
  // Homebrew needs the GNU C library.
  archives.filter(({ platform }) => platform.libc === "glibc"),
)}
  def install
    share_folder = build.head? ? build_from_source : "share"
    bin.install Dir[build.head? ? "dist/cluster-*" : "bin/*"]
    man1.install Dir["#{share_folder}/man/man1/*"]
    bash_completion.install Dir["#{share_folder}/bash-completion/completions/*"]
    zsh_completion.install Dir["#{share_folder}/zsh/site-functions/*"]
    fish_completion.install Dir["#{share_folder}/fish/vendor_completions.d/*"]
    doc.install Dir["#{share_folder}/doc/cluster-e2e/*"]
  end

  # Everything is what bun.lock pins: Bun itself by its checksum, then the packages by Bun.
  def build_from_source
    system "scripts/pinned-bun", "pinned"
    system "pinned/bun", "install", "--frozen-lockfile", "--ignore-scripts"
    system "pinned/bun", "scripts/build.ts"
    system "pinned/bun", "scripts/documents.ts", "dist"
    "dist/share"
  end

  test do
    expected = version.head? ? "0.0.0+" : version.to_s
    %w[${programs.join(" ")}].each do |program|
      assert_match expected, shell_output("#{bin}/#{program} --version")
    end
  end
end
`;
}

function system(name: "macos" | "linux", archives: readonly Archive[]): string {
  const lines = archives.flatMap(({ platform, url, sha256 }) => [
    `    on_${platform.cpu === "arm64" ? "arm" : "intel"} do`,
    `      url ${ruby(url)}`,
    `      sha256 ${ruby(sha256)}`,
    "    end",
  ]);
  return lines.length === 0 ? "" : [`  on_${name} do`, ...lines, "  end", ""].join("\n");
}

/** A string literal. */
const ruby = (text: string): string => `"${text.replaceAll(/["\\#]/g, String.raw`\$&`)}"`;
