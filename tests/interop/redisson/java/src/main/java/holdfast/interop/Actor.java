package holdfast.interop;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/** One named thread, with the objects that it has used. */
final class Actor {
    private final BlockingQueue<Consumer<Actor>> orders = new LinkedBlockingQueue<>();
    private final Map<String, Object> objects = new HashMap<>();
    private final Thread thread;

    private static final Set<String> LATCHES =
            Set.of("java.util.concurrent.Semaphore", "org.redisson.misc.ReclosableLatch");

    Actor(String name) {
        thread = new Thread(this::work, name);
        thread.setDaemon(true);
        thread.start();
    }

    void give(Consumer<Actor> order) {
        orders.add(order);
    }

    void interrupt() {
        thread.interrupt();
    }

    /** Waits in a latch of Redisson, which a message opens. */
    boolean parked() {
        List<String> frames = Arrays.stream(thread.getStackTrace())
                .map(frame -> frame.getClassName())
                .toList();
        return frames.contains("java.util.concurrent.locks.LockSupport") && frames.stream().anyMatch(LATCHES::contains);
    }

    /** For this thread alone. */
    Map<String, Object> objects() {
        return objects;
    }

    private void work() {
        for (;;) {
            try {
                orders.take().accept(this);
            } catch (InterruptedException late) {
                // The interrupt was meant for an order that had ended.
            }
        }
    }
}
