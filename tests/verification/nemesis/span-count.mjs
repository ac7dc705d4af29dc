// @ts-check
/** Of this process's scripts, if it is traced. */
export const spans = { ofScripts: 0 };
