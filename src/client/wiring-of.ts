import type { Wiring } from './wiring.js';

const wirings = new WeakMap<object, Wiring>();

/** Keeps the mechanisms of a client for the functions beside it. */
export const keepWiring = (client: object, wiring: Wiring): void => void wirings.set(client, wiring);

/** The mechanisms of a client; `undefined` for an object that `createClient()` of this copy of the package did not make. */
export const wiringOf = (client: object): Wiring | undefined => wirings.get(client);
