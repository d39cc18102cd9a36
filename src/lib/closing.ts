/** Works with what was opened, and closes it whatever happens. */
export async function closing<Opened extends { close(): Promise<unknown> }, T>(
  opening: Promise<Opened>,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const opened = await opening;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
