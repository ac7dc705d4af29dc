import type { EventOf, HeapSize } from './history-events.js';
import type { Violate } from './history-violations.js';

/** Variation of the heap after a collection between two idle points: compiled code, buffers, idle entries. */
const GROWTH: HeapSize = { bytes: 1_500_000, objects: 4_000 };

/** A section that leaves one object behind in two, or a string in each. */
const KEPT_PER_SECTION: HeapSize = { bytes: 100, objects: 0.5 };

/** That the heap of a process is as large at each quiet point as at the one before. `heaps`: of one life. */
export function checkHeap(heaps: readonly EventOf<'heap'>[], violate: Violate): void {
  for (const [at, heap] of heaps.entries()) {
    const before = heaps[at - 1];
    if (!before) continue;
    const { bytes, objects } = growth(before.size, heap.size);
    if (bytes <= GROWTH.bytes && objects <= GROWTH.objects) continue;
    violate(
      'memory that grows',
      `the heap of ${heap.process} has grown by ${(bytes / 1_000).toFixed(0)} kB and ${objects} objects between two quiet points`,
      ...heaps,
    );
  }
}

/** That a process keeps nothing of its sections: the heap would grow in every batch, and in each by about the same. */
export function checkDrill(drilled: EventOf<'drilled'>, violate: Violate): void {
  const { process, sections, sizes } = drilled;
  const steps = sizes.slice(1).map((size, at) => growth(sizes[at] as HeapSize, size));
  const least = {
    bytes: Math.min(...steps.map(({ bytes }) => bytes)) / sections,
    objects: Math.min(...steps.map(({ objects }) => objects)) / sections,
  };
  if (least.bytes <= KEPT_PER_SECTION.bytes && least.objects <= KEPT_PER_SECTION.objects) return;
  violate(
    'memory that grows',
    `${process} keeps at least ${least.bytes.toFixed(0)} bytes and ${least.objects.toFixed(1)} objects of each section`,
    drilled,
  );
}

const growth = (before: HeapSize, after: HeapSize): HeapSize => ({
  bytes: after.bytes - before.bytes,
  objects: after.objects - before.objects,
});
