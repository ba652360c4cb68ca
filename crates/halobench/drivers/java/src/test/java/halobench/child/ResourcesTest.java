package halobench.child;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import halobench.spec.Space;
import halobench.spec.Usage;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResourcesTest {
    @Test
    void fieldsAreFoundByTheirWholeName() {
        String io = "wchar: 5\nwrite_bytes: 7\ncancelled_write_bytes: 9\n";
        assertEquals(5, Resources.field(io, "wchar:"));
        assertEquals(7, Resources.field(io, "write_bytes:"));
        assertEquals(9, Resources.field(io, "cancelled_write_bytes:"));
        assertEquals(0, Resources.field(io, "absent:"));
    }

    @Test
    void filesAreCounted(@TempDir Path dir) throws Exception {
        Files.write(dir.resolve("a"), new byte[100_000]);
        Files.createDirectory(dir.resolve("b"));
        Files.write(dir.resolve("b/c"), new byte[3]);
        Space space = Resources.space(dir);
        assertEquals(100_003, space.apparent());
        assertEquals(2, space.files());
        assertTrue(space.allocated() > 0);
        assertEquals(space.files(), Resources.walked(dir).files());
        assertEquals(space.apparent(), Resources.walked(dir).apparent());
        Resources.remove(dir.resolve("b"));
        assertEquals(1, Resources.space(dir).files());
    }

    @Test
    void countersRise() throws Exception {
        Usage before = Resources.usage();
        long end = System.nanoTime() + 60_000_000;
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
        Thread thread = new Thread(() -> {
            try {
                Thread.sleep(5);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            Resources.leaving();
        });
        thread.start();
        thread.join();
        Usage used = Resources.usage().since(before);
        assertTrue(used.cpuUserS() + used.cpuSystemS() > 0, used.toString());
        assertTrue(used.switchesVoluntary() > 0, used.toString());
        assertTrue(Resources.memory().anon() > 0);
    }
}
