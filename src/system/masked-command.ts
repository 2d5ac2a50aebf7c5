/**
 * Masks what looks like a secret in a command line: values of options and variables whose names say so (`--password x`,
 * `MYSQL_PWD=x`), values of `--env`, headers, `-u user:password`, and user parts of URLs. Secrets
 * that the program knows are masked elsewhere.
 */

const longest = 4000;
const mostLevels = 4;
const hidden = "***";
const secretName =
  /pass(?:wd|word|phrase|code)?(?![a-z])|pwd|(?:^|[-_])pw(?![a-z])|secret|token|credential|auth|cookie|api-?_?key|access-?_?key|private-?_?key|(?:^|[-_])key(?![a-z])/i;
const headerName =
  /^(?:--?[\w-]{1,20}=?)?["']?(?:proxy-|x-)?(?:authorization|cookie|[\w-]{0,30}(?:token|key|auth|secret)):/i;
const variableOption = /^--?env(?:=.|$)/;
const userOption = /^--?(?:u|(?:proxy-)?user(?:name)?)$/;

/** Takes time in proportion to the words, of which it looks at 4,000 characters. */
export function maskedCommand(words: readonly string[]): string {
  const [only = "", ...others] = words;
  const line = others.length === 0 ? only : words.map(asWord).join(" ");
  return maskLine(line.slice(0, longest), 0);
}

const asWord = (word: string): string =>
  word === "" || /[\s"'\\$`*?~#;&|<>()[\]{}!]/.test(word)
    ? `'${word.replaceAll("'", String.raw`'\''`)}'`
    : word;

function maskLine(line: string, level: number): string {
  // What the next word is: the value of a secret option, or a user with a password.
  let next: "secret" | "user" | "variable" | undefined;
  return piecesOf(line)
    .map(({ text, isWord }) => {
      if (!isWord) return text;
      const expected = next;
      next = undefined;
      if (expected === "secret" && !/^-{1,2}[a-z]/i.test(text)) return hidden;
      if (expected === "user") return text.replace(/:.*/s, `:${hidden}`);
      const bare = text.replace(/^["']/, "").replace(/["']$/, "");
      const isVariable = variableOption.test(bare);
      if (expected === "variable" || (isVariable && bare.includes("=")))
        return text.replace(/^((?:["']?-[^=]*=)?[^=]*=).*/s, `$1${hidden}`);
      if (isVariable) {
        next = "variable";
        return text;
      }
      if (/^--?[\w-]+$/.test(bare) && secretName.test(bare)) next = "secret";
      else if (userOption.test(bare)) next = "user";
      // The value may be a word of its own, as in `"password": "x"`.
      else if (/[=:]["']?$/.test(bare) && secretName.test(bare)) next = "secret";
      return maskWord(text, level);
    })
    .join("");
}

function maskWord(word: string, level: number): string {
  const quote = /^["']/.exec(word)?.[0] ?? "";
  const isClosed = quote !== "" && word.length > 1 && word.endsWith(quote);
  const inner = isClosed ? word.slice(1, -1) : word;
  const wrapped = (text: string): string => (isClosed ? `${quote}${text}${quote}` : text);
  const header = headerName.exec(inner)?.[0];
  if (header !== undefined) return wrapped(`${header} ${hidden}`);
  if (quote !== "" && level < mostLevels && /[\s"']/.test(inner))
    return isClosed
      ? wrapped(maskLine(inner, level + 1))
      : `${quote}${maskLine(inner.slice(1), level + 1)}`;
  const attached = /^-u(?=[^:]+:)/.test(inner) ? inner.replace(/:.*/s, `:${hidden}`) : inner;
  const parted = attached.search(/[=:]/);
  const hasValue =
    parted >= 0 && parted < attached.length - 1 && !attached.startsWith("://", parted);
  if (hasValue && secretName.test(attached.slice(0, parted)))
    return wrapped(`${attached.slice(0, parted + 1)}${hidden}`);
  return wrapped(attached.replaceAll(/:\/\/[^\s/@]*@/g, `://${hidden}@`));
}

/**
 * Splits into words and the space between them as a shell does, roughly: quotes hold words
 * together, and a quote without an end reaches to the line's end.
 */
function piecesOf(line: string) {
  const pieces: { readonly text: string; readonly isWord: boolean }[] = [];
  for (let position = 0; position < line.length;) {
    const start = position;
    const isWord = !isSpace(line[position] ?? "");
    while (position < line.length && isSpace(line[position] ?? "") !== isWord)
      position = isWord ? endOfPart(line, position) : position + 1;
    pieces.push({ text: line.slice(start, position), isWord });
  }
  return pieces;
}

/** Where the quoted part or the character at this position ends. */
function endOfPart(line: string, position: number): number {
  const quote = line[position];
  if (quote === "\\") return position + 2;
  if (quote !== '"' && quote !== "'") return position + 1;
  const end = line.indexOf(quote, position + 1);
  return end < 0 ? line.length : end + 1;
}

const isSpace = (character: string): boolean => " \t\n;&|()".includes(character);
