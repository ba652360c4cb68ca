package halobench.child;

import halobench.spec.Memory;
import halobench.spec.Space;
import halobench.spec.Usage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** What this process used, from /proc, and what its folder holds. */
final class Resources {
    /** Ticks of /proc/self/stat in a second: the kernel's ABI has had 100 on every common architecture. */
    private static final double TICKS = 100;

    /** Context switches of threads that told theirs before they ended: /proc forgets them. */
    private static final AtomicLong GONE_VOLUNTARY = new AtomicLong();

    private static final AtomicLong GONE_INVOLUNTARY = new AtomicLong();

    private Resources() {}

    /** The counters now. */
    static Usage usage() {
        // The second field is the program's name, in parentheses, and may hold anything.
        String stat = read(Path.of("/proc/self/stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 1).trim().split(" ");
        String io = read(Path.of("/proc/self/io"));
        long voluntary = GONE_VOLUNTARY.get();
        long involuntary = GONE_INVOLUNTARY.get();
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path thread : threads) {
                String status = read(thread.resolve("status"));
                voluntary += field(status, "voluntary_ctxt_switches:");
                involuntary += field(status, "nonvoluntary_ctxt_switches:");
            }
        } catch (IOException e) {
            // Counted as none.
        }
        boolean known = fields.length > 12;
        return new Usage(
                known ? Long.parseLong(fields[11]) / TICKS : 0,
                known ? Long.parseLong(fields[12]) / TICKS : 0,
                voluntary,
                involuntary,
                field(io, "read_bytes:"),
                field(io, "write_bytes:"),
                field(io, "cancelled_write_bytes:"));
    }

    /** The calling thread is about to end: its switches are kept. */
    static void leaving() {
        String status = read(Path.of("/proc/thread-self/status"));
        GONE_VOLUNTARY.addAndGet(field(status, "voluntary_ctxt_switches:"));
        GONE_INVOLUNTARY.addAndGet(field(status, "nonvoluntary_ctxt_switches:"));
    }

    private static String read(Path path) {
        try {
            return Files.readString(path, StandardCharsets.ISO_8859_1);
        } catch (IOException | UncheckedIOException e) {
            return "";
        }
    }

    /** The number behind {@code name} at the start of a line; 0 if there is none. */
    static long field(String text, String name) {
        int at = text.startsWith(name) ? 0 : text.indexOf("\n" + name) + 1;
        if (at == 0 && !text.startsWith(name)) {
            return 0;
        }
        long number = 0;
        boolean any = false;
        for (int i = at + name.length(); i < text.length(); i++) {
            char c = text.charAt(i);
            if (c >= '0' && c <= '9') {
                number = number * 10 + c - '0';
                any = true;
            } else if (any || c == '\n') {
                break;
            }
        }
        return number;
    }

    /** Resident memory now. */
    static Memory memory() {
        String status = read(Path.of("/proc/self/status"));
        return new Memory(
                field(status, "RssAnon:") * 1024,
                field(status, "RssFile:") * 1024,
                field(status, "RssShmem:") * 1024,
                0);
    }

    /**
     * What a folder and those below it hold. Java does not tell a file's allocated blocks; {@code find} does, and where it
     * is missing, lengths rounded up to 4096 stand in for them.
     */
    static Space space(Path dir) {
        try {
            return found(dir);
        } catch (IOException | NumberFormatException e) {
            return walked(dir);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return walked(dir);
        }
    }

    private static Space found(Path dir) throws IOException, InterruptedException {
        Process find = new ProcessBuilder("find", dir.toString(), "!", "-type", "d", "-printf", "%b %s\n")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        long blocks = 0;
        long bytes = 0;
        long files = 0;
        String text = new String(find.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        for (String line : text.split("\n")) {
            if (line.isEmpty()) {
                continue;
            }
            int space = line.indexOf(' ');
            blocks += Long.parseLong(line.substring(0, space));
            bytes += Long.parseLong(line.substring(space + 1));
            files++;
        }
        // A file that the engine removes meanwhile makes it fail, and is no error; a find that cannot count is.
        if (!find.waitFor(10, TimeUnit.SECONDS) || files == 0) {
            throw new IOException("find told nothing");
        }
        return new Space(blocks * 512, bytes, files);
    }

    static Space walked(Path dir) {
        long allocated = 0;
        long apparent = 0;
        long files = 0;
        Deque<Path> todo = new ArrayDeque<>();
        todo.add(dir);
        while (!todo.isEmpty()) {
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(todo.poll())) {
                for (Path entry : entries) {
                    if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
                        todo.add(entry);
                        continue;
                    }
                    long length = entry.toFile().length();
                    allocated += (length + 4095) / 4096 * 4096;
                    apparent += length;
                    files++;
                }
            } catch (IOException e) {
                // Removed meanwhile.
            }
        }
        return new Space(allocated, apparent, files);
    }

    /** Removes a folder and all in it; what cannot be removed stays. */
    static void remove(Path dir) {
        if (Files.isDirectory(dir, LinkOption.NOFOLLOW_LINKS)) {
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(dir)) {
                entries.forEach(Resources::remove);
            } catch (IOException e) {
                // Stays.
            }
        }
        try {
            Files.deleteIfExists(dir);
        } catch (IOException e) {
            // Stays.
        }
    }
}
