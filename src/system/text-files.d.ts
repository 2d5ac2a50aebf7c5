/** Files that run elsewhere, imported as text. */
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.bash" {
  const text: string;
  export default text;
}
declare module "*.zsh" {
  const text: string;
  export default text;
}
declare module "*.fish" {
  const text: string;
  export default text;
}
declare module "*.containerfile" {
  const text: string;
  export default text;
}
/** The files of example platforms. */
declare module "*/install" {
  const text: string;
  export default text;
}
declare module "*/check" {
  const text: string;
  export default text;
}

declare module "*/upgrade" {
  const text: string;
  export default text;
}
declare module "*-test" {
  const text: string;
  export default text;
}
declare module "*.conf" {
  const text: string;
  export default text;
}
declare module "*.service" {
  const text: string;
  export default text;
}
declare module "*.cib" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
/** What runs in a browser. */
declare module "*/viewer.js" {
  const text: string;
  export default text;
}
