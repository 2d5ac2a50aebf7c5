/** For calls that nothing in the test interrupts. */
export const neverAborted: AbortSignal = new AbortController().signal;
