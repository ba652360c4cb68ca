package halobench.engine;

import java.io.IOException;
import java.time.Duration;
import java.util.Map;

/** An open database, shared by all threads. */
public interface Engine {
    /** A session for the calling thread. */
    Session session();

    /** Waits until the engine's background work is done, for at most {@code limit}; false if there is work left. */
    boolean settle(Duration limit) throws InterruptedException;

    /** Figures the engine gives about itself. */
    default Map<String, String> stats() {
        return Map.of();
    }

    /** False for the engine that stores nothing: its answers are compared, for the cost, and not judged. */
    default boolean stores() {
        return true;
    }

    /** Closes the database; a failure here is a failure of the run. */
    void close() throws IOException;
}
