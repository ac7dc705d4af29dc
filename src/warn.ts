/** Emits a warning of the process. Whatever the application has made of `process.emitWarning`, no call of ours fails for it. */
export function warn(code: string, message: string): void {
  try {
    process.emitWarning(message, { code });
  } catch {
    // The warning is lost. It only tells what the calls tell as well.
  }
}
