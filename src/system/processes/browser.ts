/** Opens a URL in the user's browser. Returns whether a browser could be started; whether it shows the page is unknown. */
export async function openBrowser(url: string): Promise<boolean> {
  const { default: open } = await import("open");
  try {
    const opener = await open(url);
    // Without this, the program would keep running until the browser ends.
    opener.unref();
    return true;
  } catch {
    return false;
  }
}
