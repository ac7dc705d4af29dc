import type { EventOf } from './history-events.js';
import type { Violate } from './history-violations.js';

/** What a heap after a collection is off by from one quiet point to the next: compiled code, buffers. */
const GROWTH_BYTES = 1_500_000;

/** That the heap of a process is as large at each quiet point as at the one before. `heaps`: of one life. */
export function checkHeap(heaps: readonly EventOf<'heap'>[], violate: Violate): void {
  for (const [at, heap] of heaps.entries()) {
    const before = heaps[at - 1];
    if (!before || heap.bytes - before.bytes <= GROWTH_BYTES) continue;
    const kB = ((heap.bytes - before.bytes) / 1_000).toFixed(0);
    violate(
      'memory that grows',
      `the heap of ${heap.process} has grown by ${kB} kB between two quiet points`,
      ...heaps,
    );
  }
}
