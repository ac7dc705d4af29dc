export type { FaultProxy } from '../../../support/proxy/proxy.js';

export function pause(ms: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, ms));
}
