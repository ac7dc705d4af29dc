package holdfast.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/** One named thread, with the objects that it has used. */
final class Actor {
    private final BlockingQueue<Consumer<Actor>> orders = new LinkedBlockingQueue<>();
    private final Map<String, Object> objects = new HashMap<>();
    private final Thread thread;

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

    /** For this thread alone. */
    Map<String, Object> objects() {
        return objects;
    }

    private void work() {
        for (;;) {
            try {
                orders.take().accept(this);
            } catch (InterruptedException late) {
                // It was meant for an order that had ended.
            }
        }
    }
}
