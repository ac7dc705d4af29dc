// @ts-check

/** The words before the message of a failure that a second run does not excuse. */
export const NEVER = 'Never a flake:';
