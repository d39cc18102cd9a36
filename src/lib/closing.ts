/** Works with what was opened, and closes it whatever happens. */
export async function closing<Opened extends { close(): Promise<unknown> }, T>(
  pending: Promise<Opened>,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const opened = await pending;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
