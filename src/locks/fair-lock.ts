import { SingleLock } from './single-lock.js';

/**
 * A lock that serves its waiters in the order of their requests, across all processes. Everything else is as in
 * {@link Lock}.
 *
 * - A call that has to wait gets a place at the end of a queue in Redis, and no later call passes it. A call that does
 *   not wait gets a free lock only if the queue is empty.
 * - A waiter loses its place when its call fails, times out or is aborted, and when its client sends no refresh for
 *   `fairWaiterTimeout` (5 s). The client sends one refresh per second for all of its waiters of the lock.
 * - A live waiter that lost its place, because the queue was deleted or a failover dropped it, queues again at the end.
 * - Nested calls are served in this process and have no place in the queue.
 *
 * Three things differ from Redisson. The unlock of a lost fair lock rejects. A failed or aborted call leaves no place in
 * the queue. A dead Holdfast waiter delays the waiters behind it by 5 s once, regardless of `fairLockWaitTimeout`.
 *
 * @redisson `RedissonClient#getFairLock`
 */
export class FairLock extends SingleLock {}
