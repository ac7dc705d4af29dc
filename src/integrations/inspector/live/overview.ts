import type { LockClient } from '../../../index.js';

/** The part of the client that reads slowly. */
export type Overview = ReturnType<LockClient['overview']>;

/** What the client has read under one name. */
export type Entry = NonNullable<Awaited<ReturnType<Overview['read']>> extends Map<string, infer E> ? E : never>;
