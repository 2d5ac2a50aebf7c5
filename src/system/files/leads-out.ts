/** Linux follows 40. This is enough for any real folder, and limits the work for a hostile one. */
const mostLinks = 10;

/**
 * Whether a symbolic link leads out of its folder, also by way of other links in it, or in circles. Whether anything
 * exists at its end doesn't matter. `links` holds the targets of all links in the folder by their paths. Must hold on
 * disks that ignore case or the form of accents too, as macOS has.
 */
export function leadsOut(link: string, links: ReadonlyMap<string, string>): boolean {
  const folded = new Map([...links].map(([path, target]) => [fold(path), fold(target)]));
  return escapes(link, links) || escapes(fold(link), folded);
}

/**
 * Makes equal what any disk may take for the same name. Equates more than a disk does, which is safe: the names are
 * also compared as they are.
 */
const fold = (path: string): string => path.normalize("NFKD").toUpperCase().toLowerCase().normalize("NFKD");

function escapes(link: string, links: ReadonlyMap<string, string>): boolean {
  const place: string[] = [];
  const ahead = link.split("/");
  let followed = 0;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (place.pop() === undefined) return true;
      continue;
    }
    const target = links.get([...place, name].join("/"));
    if (target === undefined) {
      place.push(name);
      continue;
    }
    followed += 1;
    if (followed > mostLinks || target.startsWith("/")) return true;
    ahead.unshift(...target.split("/"));
  }
  return false;
}
