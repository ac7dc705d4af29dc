// @ts-check
import { server } from './global-setup.mjs';

export default async function globalTeardown() {
  await server?.stop();
}
