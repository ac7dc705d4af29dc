/**
 * The error to pass to a framework for what a function of the application has thrown. For Express and Fastify, nothing
 * is no error, and for Express neither are `'route'` and `'router'`: the request would go on.
 */
export function errorOf(reason: unknown): Error {
  if (typeof reason === 'object' && reason !== null) return reason as Error;
  return new Error('a function that handles a request threw a value that is no error: see the cause', {
    cause: reason,
  });
}
