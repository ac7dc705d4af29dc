/** The end of the name of a workload behind a network that adds 1 ms in each direction. */
export const NETWORK = ', network 1 ms';

export const behindNetworkName = (workload: string): string => workload + NETWORK;
