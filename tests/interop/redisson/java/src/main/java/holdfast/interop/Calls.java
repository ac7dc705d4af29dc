package holdfast.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Calls any method of an object by its name, with its arguments from JSON. */
final class Calls {
    private Calls() {}

    static Object call(Object target, String name, List<Object> args) throws Throwable {
        Method method = find(target, name, args)
                .orElseThrow(() -> new NoSuchMethodException(target.getClass().getSimpleName() + "." + name + args));
        Class<?>[] types = method.getParameterTypes();
        Object[] given = new Object[types.length];
        for (int i = 0; i < types.length; i++) given[i] = as(types[i], args.get(i));
        try {
            method.setAccessible(true);
            Object result = method.invoke(target, given);
            return result instanceof Future<?> future ? future.get() : result;
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        } catch (java.util.concurrent.ExecutionException failed) {
            throw failed.getCause();
        }
    }

    /** The widest method that accepts the arguments: `release(int)` and `release(String)` differ in their types. */
    private static Optional<Method> find(Object target, String name, List<Object> args) {
        return Arrays.stream(target.getClass().getMethods())
                .filter(method -> method.getName().equals(name) && method.getParameterCount() == args.size())
                .filter(method -> takes(method.getParameterTypes(), args))
                .max(Comparator.comparing(method -> method.getReturnType() == void.class ? 0 : 1));
    }

    /** The methods that the interface of a lock or synchronizer declares itself. */
    static List<String> publicMethods(Object target) {
        return Arrays.stream(target.getClass().getInterfaces().length == 0
                        ? target.getClass().getSuperclass().getInterfaces()
                        : target.getClass().getInterfaces())
                .flatMap(type -> Arrays.stream(type.getMethods()))
                .filter(method -> OURS.contains(method.getDeclaringClass().getSimpleName()))
                .map(Method::getName)
                .distinct()
                .sorted()
                .toList();
    }

    private static final Set<String> OURS = Set.of(
            "Lock", "RLock", "RLockAsync", "RFencedLock", "RFencedLockAsync", "RSemaphore", "RSemaphoreAsync",
            "RPermitExpirableSemaphore", "RPermitExpirableSemaphoreAsync", "RCountDownLatch", "RCountDownLatchAsync");

    private static boolean takes(Class<?>[] types, List<Object> args) {
        for (int i = 0; i < types.length; i++) {
            Object arg = args.get(i);
            boolean fits = arg instanceof Number
                    ? types[i] == long.class || types[i] == int.class
                    : arg instanceof List
                            ? types[i] == List.class
                            : types[i] == String.class && !isDuration(arg) && !isUnit(arg)
                                    || types[i] == TimeUnit.class && isUnit(arg)
                                    || types[i] == Duration.class && isDuration(arg);
            if (!fits) return false;
        }
        return true;
    }

    private static boolean isUnit(Object arg) {
        return "MILLISECONDS".equals(arg) || "SECONDS".equals(arg);
    }

    private static boolean isDuration(Object arg) {
        return arg instanceof String text && text.startsWith("PT");
    }

    private static Object as(Class<?> type, Object arg) {
        if (type == int.class) return ((Number) arg).intValue();
        if (type == long.class) return ((Number) arg).longValue();
        if (type == TimeUnit.class) return TimeUnit.valueOf((String) arg);
        if (type == Duration.class) return Duration.parse((String) arg);
        return arg;
    }
}
