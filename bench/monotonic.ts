/** ms by the monotonic clock of the system, which is one for all processes. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;
