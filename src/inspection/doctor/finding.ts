/** One thing that {@link doctor} looked at. */
export interface Finding {
  /** What was looked at. */
  readonly check:
    | 'server'
    | 'version'
    | 'cluster'
    | 'role'
    | 'eviction'
    | 'memory'
    | 'persistence'
    | 'replicas'
    | 'time'
    | 'clock'
    | 'latency'
    | 'pub/sub'
    | 'processes'
    | 'permissions';
  /**
   * - `ok`: nothing to do.
   * - `note`: a property of the setup that is good to know.
   * - `warning`: something works less well than it could.
   * - `error`: locks may fail or be lost.
   */
  readonly level: 'ok' | 'note' | 'warning' | 'error';
  /** The server, as it names itself; `undefined` for a finding that is not about one server. */
  readonly server: string | undefined;
  /** What was found. */
  readonly message: string;
  /** What to do; `undefined` if and only if the level is `ok`. */
  readonly advice: string | undefined;
}

/** The options of {@link doctor}. */
export interface DoctorOptions {
  /**
   * Whether to use every kind of lock and synchronizer once, on names of its own that begin with `holdfast:doctor:`. This
   * shows which permissions are missing.
   *
   * @defaultValue `true`
   */
  probes?: boolean | undefined;
}

export const ok = (check: Finding['check'], server: string | undefined, message: string): Finding => ({
  check,
  level: 'ok',
  server,
  message,
  advice: undefined,
});

export const finding = (
  check: Finding['check'],
  level: Exclude<Finding['level'], 'ok'>,
  server: string | undefined,
  message: string,
  advice: string,
): Finding => ({ check, level, server, message, advice });
