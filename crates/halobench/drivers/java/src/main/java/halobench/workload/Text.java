package halobench.workload;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Pools of text and JSON for values that compress as such data does. */
final class Text {
    private static final String[] WORDS = ("the of and to in is that for it was on are as with they be at one have this from"
            + " or had by word but not what all were when your said there use each which their time will about many then them"
            + " write would like these long make thing see him two has look more day could come number sound most people")
            .split(" ");

    private Text() {}

    /** The smaller of two even draws chooses, so that early words are common. */
    private static String word(long seed, long j) {
        long draw = Rng.at(seed, j);
        return WORDS[(int) Math.min(draw & 63, draw >>> 6 & 63)];
    }

    /** Fills {@code out} with words, each with a space behind it. */
    static void words(byte[] out, long seed) {
        int at = 0;
        for (long j = 0; at < out.length; j++) {
            at = append(out, at, word(seed, j));
            at = append(out, at, " ");
        }
    }

    /** English prose of 1730: a file of the lab's, whose path the starter tells. */
    static byte[] prose() {
        String path = System.getProperty("halobench.prose");
        if (path == null) {
            throw new IllegalArgumentException("values of prose need -Dhalobench.prose, the path of prose.txt");
        }
        try {
            byte[] text = Files.readAllBytes(Path.of(path));
            if (text.length != 1 << 17) {
                throw new IllegalArgumentException(path + " has " + text.length + " bytes, not 131072");
            }
            return text;
        } catch (IOException e) {
            throw new UncheckedIOException("reading " + path, e);
        }
    }

    /** Fills {@code out} with records, one a line. */
    static void json(byte[] out, long seed) {
        int at = 0;
        StringBuilder line = new StringBuilder(160);
        for (long j = 0; at < out.length; j += 9) {
            long score = Rng.at(seed, j + 4);
            line.setLength(0);
            line.append("{\"id\":").append(Rng.at(seed, j) >>> 40);
            line.append(",\"name\":\"").append(word(seed, j + 1)).append(' ').append(word(seed, j + 2));
            line.append("\",\"active\":").append((Rng.at(seed, j + 3) & 1) == 1);
            line.append(",\"score\":").append(Long.remainderUnsigned(score, 100)).append('.');
            two(line, (score >>> 32) % 100);
            line.append(",\"tags\":[\"").append(word(seed, j + 5)).append("\",\"").append(word(seed, j + 6));
            line.append("\"],\"at\":\"2024-");
            two(line, Long.remainderUnsigned(Rng.at(seed, j + 7), 12) + 1);
            line.append('-');
            two(line, Long.remainderUnsigned(Rng.at(seed, j + 8), 28) + 1);
            line.append("\"}\n");
            at = append(out, at, line.toString());
        }
    }

    private static void two(StringBuilder line, long number) {
        if (number < 10) {
            line.append('0');
        }
        line.append(number);
    }

    private static int append(byte[] out, int at, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        int n = Math.min(bytes.length, out.length - at);
        System.arraycopy(bytes, 0, out, at, n);
        return at + n;
    }
}
