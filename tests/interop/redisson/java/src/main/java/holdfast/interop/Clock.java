package holdfast.interop;

/** The monotonic clock of the system, which is the same one in every process: Node's `process.hrtime`. */
final class Clock {
    private Clock() {}

    static double now() {
        return System.nanoTime() / 1e6;
    }
}
