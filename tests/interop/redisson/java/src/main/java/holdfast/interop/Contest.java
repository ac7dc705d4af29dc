package holdfast.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;

/**
 * Threads that run sections of one lock or semaphore. Each section reads a number, processes it and writes it back.
 */
final class Contest {
    private static final long PATIENCE_S = 120;

    private final Clients clients;
    private final String client;
    private final String kind;
    private final String name;
    private final int port;
    private final String who;
    private final List<String> errors = new ArrayList<>();
    private final AtomicLong longestWaitNanos = new AtomicLong();

    Contest(Clients clients, Order order) {
        this.clients = clients;
        client = order.text("client");
        kind = order.text("kind");
        name = order.text("name");
        port = order.count("port", 0);
        who = order.text("who");
    }

    Map<String, Object> run(int flows, int sections) throws InterruptedException {
        AtomicLong done = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int flow = 0; flow < flows; flow++) {
            String each = who + "#" + flow;
            threads.add(new Thread(() -> {
                try (Counter counter = new Counter(port)) {
                    for (int section = 0; section < sections; section++) {
                        section(counter, each, section);
                        done.incrementAndGet();
                    }
                } catch (Throwable error) {
                    synchronized (errors) {
                        errors.add(each + ": " + error);
                    }
                }
            }, each));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) thread.join();
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("sections", done.get());
        result.put("longestWaitMs", longestWaitNanos.get() / 1e6);
        result.put("errors", errors);
        return result;
    }

    private void section(Counter counter, String each, int section) throws Exception {
        switch (kind) {
            case "semaphore" -> {
                RSemaphore semaphore = (RSemaphore) object(kind);
                long asked = System.nanoTime();
                if (section % 2 == 0) semaphore.acquire();
                else sure(semaphore.tryAcquire(1, PATIENCE_S, TimeUnit.SECONDS));
                waited(asked);
                inside(counter, "permit", each, "", 0);
                semaphore.release();
            }
            case "expirable" -> {
                RPermitExpirableSemaphore semaphore = (RPermitExpirableSemaphore) object(kind);
                long asked = System.nanoTime();
                String id = section % 2 == 0
                        ? semaphore.acquire(60, TimeUnit.SECONDS)
                        : semaphore.tryAcquire(PATIENCE_S, 60, TimeUnit.SECONDS);
                sure(id != null);
                waited(asked);
                inside(counter, "permit", each, id, 0);
                semaphore.release(id);
            }
            case "fenced" -> {
                RFencedLock lock = (RFencedLock) object(kind);
                long asked = System.nanoTime();
                Long token = section % 2 == 0
                        ? lock.lockAndGetToken()
                        : lock.tryLockAndGetToken(PATIENCE_S, 60, TimeUnit.SECONDS);
                sure(token != null);
                waited(asked);
                inside(counter, "exclusive", each, owner(), token);
                lock.unlock();
            }
            case "read-write" -> {
                boolean writes = section % 4 == 0;
                within((RLock) object(writes ? "write" : "read"), counter, writes ? "exclusive" : "shared", each, section);
            }
            default -> within((RLock) object(kind), counter, "exclusive", each, section);
        }
    }

    private void within(RLock lock, Counter counter, String mode, String each, int section) throws Exception {
        long asked = System.nanoTime();
        switch (section % 3) {
            case 0 -> lock.lock();
            case 1 -> lock.lock(60, TimeUnit.SECONDS);
            default -> sure(lock.tryLock(PATIENCE_S, 60, TimeUnit.SECONDS));
        }
        waited(asked);
        try {
            boolean nested = section % 8 == 5;
            if (nested) lock.lock();
            inside(counter, mode, each, owner(), 0);
            if (nested) lock.unlock();
        } finally {
            lock.unlock();
        }
    }

    private void inside(Counter counter, String mode, String each, String owner, long token) throws Exception {
        counter.ask("enter", name, "mode", mode, "who", each, "owner", owner, "token", token);
        long seen = counter.ask("read", name);
        if (mode.equals("exclusive")) counter.ask("write", name, "value", seen + 1);
        else if (mode.equals("shared")) sure(counter.ask("read", name) == seen);
        counter.ask("leave", name, "who", each);
    }

    private Object object(String of) {
        return clients.make(client, new Order(Map.of("kind", of, "name", name)));
    }

    private String owner() {
        return clients.client(client).getId() + ":" + Thread.currentThread().getId();
    }

    private void waited(long since) {
        longestWaitNanos.accumulateAndGet(System.nanoTime() - since, Math::max);
    }

    private static void sure(boolean fact) {
        if (!fact) throw new IllegalStateException("not granted, or written while it was read");
    }
}
