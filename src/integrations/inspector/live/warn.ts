/** Warns of a failure that no caller sees. */
export function warn(what: string, error: unknown): void {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`${what}: ${reason}`, { code: 'HOLDFAST_INSPECTOR' });
}
