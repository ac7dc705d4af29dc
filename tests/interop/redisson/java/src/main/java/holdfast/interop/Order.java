package holdfast.interop;

import java.util.List;
import java.util.Map;

/** One line from the tests. */
record Order(Map<String, Object> members) {
    String text(String name) {
        return text(name, null);
    }

    String text(String name, String otherwise) {
        Object value = members.get(name);
        return value == null ? otherwise : value.toString();
    }

    long number(String name, long otherwise) {
        Object value = members.get(name);
        return value == null ? otherwise : ((Number) value).longValue();
    }

    int count(String name, int otherwise) {
        return (int) number(name, otherwise);
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(members.get(name));
    }

    @SuppressWarnings("unchecked")
    List<Object> list(String name) {
        Object value = members.get(name);
        return value == null ? List.of() : (List<Object>) value;
    }

    @SuppressWarnings("unchecked")
    Order part(String name) {
        Object value = members.get(name);
        return new Order(value == null ? Map.of() : (Map<String, Object>) value);
    }
}
