// @ts-check

/**
 * Returns the part of a value that can be sent to another process.
 *
 * @param {unknown} value @returns {unknown}
 */
export function sendable(value) {
  if (isHold(value) || typeof value === 'function') return undefined;
  if (value instanceof Error) return described(value);
  if (Array.isArray(value)) return value.map(sendable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, sendable(each)]));
}

/** @param {unknown} error @returns {Record<string, unknown>} */
export function described(error) {
  if (!(error instanceof Error)) return { name: 'thrown', message: String(error) };
  const { name: kind, message } = error;
  const cause = error.cause instanceof Error ? { cause: described(error.cause) } : {};
  const fields = Object.fromEntries(Object.entries(error).map(([key, value]) => [key, sendable(value)]));
  return { ...fields, ...cause, name: kind, message };
}

/** @param {unknown} value @returns {value is import('holdfast').Hold} */
export function isHold(value) {
  return typeof value === 'object' && value !== null && 'release' in value && 'validFor' in value;
}
