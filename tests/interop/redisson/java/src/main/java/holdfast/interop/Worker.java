package holdfast.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The JVM of the interop tests. It reads one JSON order per line from the standard input and runs it on the named thread
 * (each name has its own thread, and so one owner). It writes one JSON reply per line, with the times of begin and end.
 */
public final class Worker {
    private final PrintStream out;
    private final Clients clients = new Clients();
    private final Bench bench = new Bench(clients);
    private final Map<String, Actor> actors = new ConcurrentHashMap<>();

    private Worker(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        // The output of a library is no reply.
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        new Worker(answers).serve();
    }

    private void serve() throws Exception {
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Order order = new Order(Json.object(line));
            String thread = order.text("thread", "main");
            Actor named = actors.computeIfAbsent(thread, Actor::new);
            switch (order.text("op")) {
                // An order about a busy thread.
                case "interrupt" -> answer(order, () -> {
                    named.interrupt();
                    return null;
                });
                case "parked" -> answer(order, named::parked);
                default -> named.give(actor -> answer(order, () -> obey(actor, order)));
            }
        }
        // The parent has gone. End like a killed process, without a request to Redis.
        Runtime.getRuntime().halt(0);
    }

    private interface Work {
        Object run() throws Throwable;
    }

    private void answer(Order order, Work work) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", order.number("id", 0));
        answer.put("from", Clock.now());
        try {
            answer.put("result", work.run());
        } catch (Throwable error) {
            Map<String, Object> described = new LinkedHashMap<>();
            described.put("class", error.getClass().getName());
            described.put("message", error.getMessage());
            described.put("cause", error.getCause() == null ? null : String.valueOf(error.getCause()));
            answer.put("error", described);
        }
        answer.put("until", Clock.now());
        synchronized (out) {
            out.println(Json.write(answer));
        }
    }

    private Object obey(Actor actor, Order order) throws Throwable {
        String op = order.text("op");
        switch (op) {
            case "createClient":
                return clients.open(order);
            case "closeClient":
                clients.close(order.text("client"));
                return null;
            case "call": {
                Order object = order.part("object");
                String client = order.text("client");
                // Each thread has its own object unless the order says that it is shared.
                Object target = actor.objects().computeIfAbsent(
                        client + object.members(), key -> clients.make(client, object));
                return Calls.call(target, order.text("method"), order.list("args"));
            }
            case "owner":
                return clients.client(order.text("client")).getId() + ":" + Thread.currentThread().getId();
            case "sleep":
                Thread.sleep(order.number("ms", 0));
                return null;
            case "methods":
                return Calls.publicMethods(clients.make(order.text("client"), order.part("object")));
            case "twoAsync": {
                // One thread, like an event loop: both calls are made before the first reply.
                var lock = (org.redisson.api.RLock) clients.make(order.text("client"), order.part("object"));
                var first = lock.lockAsync().toCompletableFuture();
                var second = lock.lockAsync().toCompletableFuture();
                Thread.sleep(500);
                return (first.isDone() ? 1 : 0) + (second.isDone() ? 1 : 0);
            }
            case "contest":
                return new Contest(clients, order).run(order.count("flows", 1), order.count("sections", 1));
            case "info":
                return Map.of(
                        "pid", ProcessHandle.current().pid(),
                        "java", System.getProperty("java.version"),
                        "redisson", org.redisson.Version.class.getPackage().getName());
            default:
                return bench.obey(op, order);
        }
    }
}
