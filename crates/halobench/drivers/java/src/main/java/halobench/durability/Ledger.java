package halobench.durability;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The file that tells how far each thread is, mapped: it survives a kill of the process. */
final class Ledger {
    static final long OPENING = 1;
    static final long OPEN = 2;
    private static final VarHandle WORDS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ByteBuffer map;

    Ledger(Path path, long threads) throws IOException {
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            map = file.map(FileChannel.MapMode.READ_WRITE, 0, 64 * (1 + threads));
        }
    }

    void state(long state) {
        WORDS.setVolatile(map, 0, state);
    }

    void openNs(long ns) {
        WORDS.setVolatile(map, 8, ns);
    }

    void begin(int thread, long number) {
        WORDS.setVolatile(map, 64 + 64 * thread, number);
    }

    void acknowledge(int thread, long number) {
        WORDS.setVolatile(map, 72 + 64 * thread, number);
    }

    long acked(int thread) {
        return (long) WORDS.getVolatile(map, 72 + 64 * thread);
    }
}
