import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares texts in a time that does not depend on where they differ. */
export function isSameSecret(given: unknown, secret: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(secret));
}
