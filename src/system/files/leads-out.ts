/** Linux follows 40. This is enough for any real folder, and limits the work for a hostile one. */
const mostLinks = 10;

/**
 * Returns a symbolic link that leads out of its folder, also by way of other links in it, or in circles; undefined if
 * none does. Whether anything exists at a link's end doesn't matter. `links` holds the targets of all links in the
 * folder by their paths. Must hold on disks that ignore case or the form of accents too, as macOS has. Takes time in
 * proportion to the length of all paths and targets.
 */
export function linkThatLeadsOut(links: ReadonlyMap<string, string>): string | undefined {
  return firstThatEscapes(links, (path) => path) ?? firstThatEscapes(links, fold);
}

/**
 * Makes equal what any disk may take for the same name. Equates more than a disk does, which is safe: the names are
 * also compared as they are.
 */
const fold = (path: string): string =>
  isAscii(path) ? path.toLowerCase() : path.normalize("NFKD").toUpperCase().toLowerCase().normalize("NFKD");

const isAscii = (path: string): boolean => /^\p{ASCII}*$/u.test(path);

/** A link, or a folder above one. */
interface Place {
  readonly parent: Place | undefined;
  readonly entries: Map<string, Place>;
  link?: Link;
}

interface Link {
  readonly target: string;
  /** Each link's end is found once. While it is being found, nothing else may lead through the link. */
  end: End | "unknown" | "outside";
}

/** Where a path ends: so many names below a place, and after so many links. */
interface End {
  readonly place: Place;
  readonly below: number;
  readonly followed: number;
}

function firstThatEscapes(links: ReadonlyMap<string, string>, form: (path: string) => string): string | undefined {
  const root: Place = { parent: undefined, entries: new Map() };
  const formed = [...links].map(([path, target]) => ({ path, formedPath: form(path), target: form(target) }));
  for (const { formedPath, target } of formed) placeOf(root, formedPath).link = { target, end: "unknown" };
  return formed.find(({ formedPath }) => follow(root, formedPath, 0) === undefined)?.path;
}

function placeOf(root: Place, path: string): Place {
  let place = root;
  for (const name of path.split("/")) {
    const next = place.entries.get(name) ?? { parent: place, entries: new Map<string, Place>() };
    place.entries.set(name, next);
    place = next;
  }
  return place;
}

/** Returns where the path from `start` ends; undefined if it leads out of the root. */
function follow(start: Place, path: string, depth: number): End | undefined {
  let [place, below, followed] = [start, 0, 0];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    const next = below > 0 ? undefined : name === ".." ? place.parent : place.entries.get(name);
    if (name === "..") {
      if (below > 0) below -= 1;
      else if (next === undefined) return undefined;
      else place = next;
    } else if (next === undefined) below += 1;
    else if (next.link === undefined) place = next;
    else {
      const end = endOf(next, next.link, depth);
      if (end === undefined || followed + end.followed > mostLinks) return undefined;
      [place, below, followed] = [end.place, end.below, followed + end.followed];
    }
  }
  return { place, below, followed };
}

function endOf({ parent }: Place, link: Link, depth: number): End | undefined {
  if (link.end === "unknown") {
    link.end = "outside";
    const isTooFar = depth === mostLinks || link.target.startsWith("/");
    const end = isTooFar || parent === undefined ? undefined : follow(parent, link.target, depth + 1);
    if (end !== undefined) link.end = { ...end, followed: end.followed + 1 };
  }
  return link.end === "outside" ? undefined : link.end;
}
