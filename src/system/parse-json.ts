/** Nothing that this program reads has a tenth of it. Functions that follow such a value call themselves at each level. */
const mostLevels = 100;

/** Returns the value of a JSON text from outside; undefined if it isn't JSON, or is nested more than 100 levels deep. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isTooDeep(text: string): boolean {
  let [levels, isInString] = [0, false];
  for (let place = 0; place < text.length; place += 1) {
    const character = text[place];
    if (character === '"') isInString = !isInString;
    else if (isInString) place += character === "\\" ? 1 : 0;
    else if (character === "[" || character === "{") levels += 1;
    else if (character === "]" || character === "}") levels -= 1;
    if (levels > mostLevels) return true;
  }
  return false;
}
