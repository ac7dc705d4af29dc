package holdfast.interop;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** The connection of one thread to the referee of a contest, which has the protected state, outside of Redis. */
final class Counter implements Closeable {
    private final Socket socket;
    private final BufferedReader replies;
    private final OutputStream requests;
    private long sent;

    Counter(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        socket.setTcpNoDelay(true);
        replies = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        requests = socket.getOutputStream();
    }

    /** `more`: pairs of name and value. */
    long ask(String op, String name, Object... more) throws IOException {
        Map<String, Object> request = new LinkedHashMap<>();
        request.put("id", ++sent);
        request.put("op", op);
        request.put("name", name);
        for (int i = 0; i < more.length; i += 2) request.put((String) more[i], more[i + 1]);
        requests.write((Json.write(request) + "\n").getBytes(StandardCharsets.UTF_8));
        requests.flush();
        return ((Number) Json.object(replies.readLine()).get("value")).longValue();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
