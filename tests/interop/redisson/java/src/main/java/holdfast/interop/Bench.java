package holdfast.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Lock;
import org.redisson.api.RSemaphore;

/** The workloads of the bench, with a thread for each flow. */
final class Bench {
    private final Clients clients;
    private Lock held;
    private Waiters waiters;

    Bench(Clients clients) {
        this.clients = clients;
    }

    Object obey(String op, Order order) throws Throwable {
        switch (op) {
            case "flows":
                return flows(order);
            case "contend":
                return contend(order);
            case "takeLock":
                held = (Lock) clients.make(order.text("client"), order.part("object"));
                held.lock();
                return null;
            case "giveBack": {
                double calledAt = Clock.now();
                held.unlock();
                return calledAt;
            }
            case "startWaiters":
                waiters = new Waiters(clients, order);
                return null;
            case "firstEntered":
                return waiters.firstEntered();
            default:
                throw new IllegalArgumentException("no order " + op);
        }
    }

    private interface Flow {
        void run(int number) throws Exception;
    }

    private static void together(int flows, Flow flow) throws Exception {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < flows; i++) {
            int number = i;
            threads.add(new Thread(() -> {
                try {
                    flow.run(number);
                } catch (Throwable error) {
                    failure.compareAndSet(null, error);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) thread.join();
        if (failure.get() != null) throw new IllegalStateException("a flow failed", failure.get());
    }

    /** Uncontended sections, each flow with its own name; ms. */
    private Object flows(Order order) throws Exception {
        int sections = order.count("sections", 1);
        int flows = order.count("flows", 1);
        String client = order.text("client");
        double startedAt = Clock.now();
        together(flows, number -> {
            Lock lock = (Lock) clients.make(client, named(order.part("object"), ":" + number));
            for (int i = 0; i < sections; i++) {
                lock.lock();
                lock.unlock();
            }
        });
        return Clock.now() - startedAt;
    }

    private static Order named(Order object, String suffix) {
        if (object.text("name") == null) return object;
        Map<String, Object> members = new LinkedHashMap<>(object.members());
        members.put("name", object.text("name") + suffix);
        return new Order(members);
    }

    /**
     * `permits`: number of threads that may be inside. `readShare`: percentage of reads on a read-write lock.
     * The result has the ms from a call to its section, and to its end, of some sections.
     */
    private Object contend(Order order) throws Exception {
        int sections = order.count("sectionsEach", 1);
        long holdMs = order.number("holdMs", 0);
        int permits = order.count("permits", 1);
        int readShare = order.count("readShare", 0);
        String client = order.text("client");
        Order object = order.part("object");
        AtomicInteger inside = new AtomicInteger();
        AtomicLong longest = new AtomicLong();
        List<Double> waits = new ArrayList<>();
        List<Double> lengths = new ArrayList<>();
        double startedAt = Clock.now();
        together(order.count("flows", 1), number -> {
            for (int i = 0; i < sections; i++) {
                boolean reads = (number * 31 + i) % 100 < readShare;
                long asked = System.nanoTime();
                Runnable leave = enter(client, object, reads);
                long waited = System.nanoTime() - asked;
                longest.accumulateAndGet(waited, Math::max);
                int others = inside.getAndIncrement();
                if (!reads && others >= permits && readShare == 0) throw new IllegalStateException("too many are inside");
                if (holdMs > 0) Thread.sleep(holdMs);
                inside.getAndDecrement();
                leave.run();
                long length = System.nanoTime() - asked;
                synchronized (waits) {
                    waits.add(waited / 1e6);
                    lengths.add(length / 1e6);
                }
            }
        });
        double endedAt = Clock.now();
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("startedAt", startedAt);
        result.put("endedAt", endedAt);
        result.put("longestWaitMs", longest.get() / 1e6);
        result.put("waits", some(waits));
        result.put("lengths", some(lengths));
        return result;
    }

    /** Every nth value, at most 2,000. */
    private static List<Double> some(List<Double> values) {
        int every = values.size() / 2_000 + 1;
        List<Double> kept = new ArrayList<>();
        for (int i = 0; i < values.size(); i += every) kept.add(values.get(i));
        return kept;
    }

    private Runnable enter(String client, Order object, boolean reads) throws Exception {
        Order wanted = object.text("kind").equals("read-write")
                ? new Order(Map.of("kind", reads ? "read" : "write", "name", object.text("name")))
                : object;
        Object made = clients.make(client, wanted);
        if (made instanceof RSemaphore semaphore) {
            semaphore.acquire();
            return semaphore::release;
        }
        Lock lock = (Lock) made;
        lock.lock();
        return lock::unlock;
    }

    /** Threads that wait for a lock, acquire it once and release it. */
    private static final class Waiters {
        private final List<Double> entered = new ArrayList<>();
        private final CountDownLatch over;

        Waiters(Clients clients, Order order) {
            int count = order.count("waiters", 1);
            over = new CountDownLatch(count);
            for (int i = 0; i < count; i++) {
                new Thread(() -> {
                    Lock lock = (Lock) clients.make(order.text("client"), order.part("object"));
                    lock.lock();
                    synchronized (entered) {
                        entered.add(Clock.now());
                    }
                    lock.unlock();
                    over.countDown();
                }).start();
            }
        }

        double firstEntered() throws InterruptedException {
            over.await();
            synchronized (entered) {
                return entered.get(0);
            }
        }
    }
}
