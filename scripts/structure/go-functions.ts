/**
 * Lines of every function in a Go file that is longer than one, function literals included. Relies on gofmt: a function ends where the first
 * later line that is indented as its own begins with a brace.
 */
export function goFunctions(text: string): readonly number[] {
  const lines = withoutTexts(text).split("\n");
  return lines.flatMap((line, index) => {
    if (!/\bfunc\b/.test(line) || !/[{(,]$/.test(line.trimEnd())) return [];
    const [indent = ""] = /^\t*/.exec(line) ?? [];
    const length = lines
      .slice(index)
      .findIndex((later, distance) => distance > 0 && later.startsWith(`${indent}}`));
    return length < 0 ? [] : [length + 1];
  });
}

/** Comments and texts may hold anything; their line ends stay. */
function withoutTexts(text: string): string {
  return text.replaceAll(
    /\/\/.*|\/\*[\s\S]{0,50000}?\*\/|"(?:\\.|[^"\\\n]){0,9999}"|'(?:\\.|[^'\\\n]){1,99}'|`[^`]*`/g,
    (found) => found.replaceAll(/[^\n]/g, ""),
  );
}
