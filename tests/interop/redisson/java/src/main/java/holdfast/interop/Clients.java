package holdfast.interop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.LockOptions;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.config.ReadMode;

/** The clients of this process and the objects made of them. */
final class Clients {
    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();

    /** Absent settings have the defaults of Redisson. */
    String open(Order order) {
        Config config = new Config();
        List<Object> addresses = order.list("addresses");
        String mode = order.text("mode", "single");
        BaseConfig<?> servers;
        switch (mode) {
            case "single" -> servers = config.useSingleServer().setAddress((String) addresses.get(0));
            case "replica" -> {
                var replicated = config.useMasterSlaveServers().setMasterAddress((String) addresses.get(0));
                addresses.stream().skip(1).forEach(each -> replicated.addSlaveAddress((String) each));
                servers = replicated.setReadMode(ReadMode.MASTER);
            }
            case "cluster" -> {
                var cluster = config.useClusterServers();
                addresses.forEach(each -> cluster.addNodeAddress((String) each));
                servers = cluster;
            }
            default -> throw new IllegalArgumentException("no mode " + mode);
        }
        if (order.members().containsKey("timeout")) servers.setTimeout(order.count("timeout", 0));
        if (order.members().containsKey("retryAttempts")) servers.setRetryAttempts(order.count("retryAttempts", 0));
        if (order.members().containsKey("retryDelay")) {
            servers.setRetryDelay(new ConstantDelay(java.time.Duration.ofMillis(order.number("retryDelay", 0))));
        }
        if (order.members().containsKey("subscriptionConnections")) {
            // One connection, so that a test has to cut only one.
            int size = order.count("subscriptionConnections", 1);
            if (servers instanceof org.redisson.config.SingleServerConfig single) {
                single.setSubscriptionConnectionMinimumIdleSize(size).setSubscriptionConnectionPoolSize(size);
            }
        }
        String prefix = order.text("keyPrefix");
        if (prefix != null) mapNames(config, servers, prefix);
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(order.number("lockWatchdogTimeout", config.getLockWatchdogTimeout()));
        config.setFairLockWaitTimeout(order.number("fairLockWaitTimeout", config.getFairLockWaitTimeout()));
        RedissonClient client = Redisson.create(config);
        clients.put(order.text("client"), client);
        return client.getId();
    }

    /** The interface and the class with its setter differ between the versions. */
    private static void mapNames(Config config, BaseConfig<?> servers, String prefix) {
        for (Object owner : new Object[] {config, servers}) {
            for (Method setter : owner.getClass().getMethods()) {
                if (!setter.getName().equals("setNameMapper")) continue;
                Class<?> mapper = setter.getParameterTypes()[0];
                Object prefixing = Proxy.newProxyInstance(mapper.getClassLoader(), new Class<?>[] {mapper}, (self, method, args) -> {
                    if (method.getName().equals("map")) return prefix + args[0];
                    if (method.getName().equals("unmap")) return ((String) args[0]).substring(prefix.length());
                    return method.invoke(prefix, args);
                });
                try {
                    setter.invoke(owner, prefixing);
                } catch (ReflectiveOperationException refused) {
                    throw new IllegalStateException(refused);
                }
                return;
            }
        }
        throw new IllegalStateException("no setNameMapper");
    }

    void close(String name) {
        RedissonClient client = clients.remove(name);
        if (client != null) client.shutdown();
    }

    RedissonClient client(String name) {
        RedissonClient client = clients.get(name);
        if (client == null) throw new IllegalArgumentException("no client " + name);
        return client;
    }

    /** `{kind, name}`; for locks over other locks also `members`, each optionally with its own `client`, or `values`. */
    Object make(String clientName, Order object) {
        RedissonClient client = client(object.text("client", clientName));
        String name = object.text("name");
        String kind = object.text("kind");
        switch (kind) {
            case "lock":
                return client.getLock(name);
            case "spin":
                return client.getSpinLock(name);
            case "spin-constant":
                return client.getSpinLock(name, new LockOptions.ConstantBackOff());
            case "fenced":
                return client.getFencedLock(name);
            case "fair":
                return client.getFairLock(name);
            case "non-reentrant":
                return since(client, "getNonReentrantLock", name);
            case "non-reentrant-fair":
                return since(client, "getNonReentrantFairLock", name);
            case "read":
                return client.getReadWriteLock(name).readLock();
            case "write":
                return client.getReadWriteLock(name).writeLock();
            case "semaphore":
                return client.getSemaphore(name);
            case "expirable":
                return client.getPermitExpirableSemaphore(name);
            case "latch":
                return client.getCountDownLatch(name);
            case "multi":
                return client.getMultiLock(members(clientName, object));
            case "red":
                return new RedissonRedLock(members(clientName, object));
            case "group":
                return client.getMultiLock(name, new ArrayList<>(object.list("values")));
            default:
                throw new IllegalArgumentException("no kind " + kind);
        }
    }

    @SuppressWarnings("unchecked")
    private RLock[] members(String clientName, Order object) {
        return object.list("members").stream()
                .map(member -> (RLock) make(clientName, new Order((Map<String, Object>) member)))
                .toArray(RLock[]::new);
    }

    /** Methods that older versions lack. */
    private static Object since(RedissonClient client, String factory, String name) {
        try {
            return RedissonClient.class.getMethod(factory, String.class).invoke(client, name);
        } catch (ReflectiveOperationException missing) {
            throw new UnsupportedOperationException("this Redisson has no " + factory, missing);
        }
    }
}
