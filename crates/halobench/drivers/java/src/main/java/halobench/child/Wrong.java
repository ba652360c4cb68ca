package halobench.child;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Wrong answers seen: how many, and the first few of them in words. */
public final class Wrong {
    private static final int EXAMPLES = 5;

    public long count;
    public final List<String> examples = new ArrayList<>();

    /** Notes one. */
    public void note(Supplier<String> words) {
        count++;
        if (examples.size() < EXAMPLES) {
            examples.add(words.get());
        }
    }

    /** Adds another's. */
    public void merge(Wrong other) {
        count += other.count;
        for (String words : other.examples) {
            if (examples.size() < EXAMPLES) {
                examples.add(words);
            }
        }
    }

    /** A key for people. */
    static String show(byte[] key) {
        StringBuilder hex = new StringBuilder();
        boolean graphic = true;
        for (byte b : key) {
            graphic &= b > ' ' && b < 127;
            hex.append(String.format("%02x", b));
        }
        return graphic ? new String(key, StandardCharsets.US_ASCII) : hex.toString();
    }
}
