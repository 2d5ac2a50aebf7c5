const unreleased = "## Unreleased\n";

interface Cut {
  /** The whole changelog, where what was unreleased now stands under the tag. */
  readonly changelog: string;
  /** What users notice in this release. */
  readonly notes: string;
}

/** Throws where there is nothing to release. */
export function cutChangelog(text: string, tag: string): Cut {
  const at = text.indexOf(unreleased);
  if (at < 0) throw new Error('CHANGELOG.md lacks the heading "## Unreleased"');
  const after = at + unreleased.length;
  const next = text.indexOf("\n## ", after - 1);
  const notes = text.slice(after, next < 0 ? undefined : next).trim();
  if (notes === "")
    throw new Error("CHANGELOG.md has nothing under Unreleased: there is nothing to release");
  const head = text.slice(0, at).replace("; there is none yet.", ".");
  const earlier = next < 0 ? "" : `\n${text.slice(next + 1)}`;
  return { changelog: `${head}${unreleased}\n## ${tag}\n\n${notes}\n${earlier}`, notes };
}
