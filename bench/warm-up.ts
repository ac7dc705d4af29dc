/** Sections that a process runs before single ones are timed, as many as the JVM: whose code is longer is optimised later. */
export const warmUpSections = (quick: boolean): number => (quick ? 2_000 : 20_000);
