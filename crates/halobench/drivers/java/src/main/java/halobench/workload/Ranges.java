package halobench.workload;

import java.util.HashMap;
import java.util.Map;

/** Where each range of a phase must end. */
public final class Ranges {
    private final Sorted sorted;
    private final int[] last;
    private final Map<Long, Integer> other = new HashMap<>();
    private final int size;
    private final boolean backward;

    /** The ends of ranges of up to {@code size >= 1} entries that start at the ids of {@code ops}. */
    public Ranges(Ops ops, Sorted sorted, int size, boolean backward) {
        if (ops.count() > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("more than 2^31 ranges are too many for this driver");
        }
        this.sorted = sorted;
        this.size = size;
        this.backward = backward;
        last = new int[(int) ops.count()];
        for (int j = 0; j < last.length; j++) {
            long id = ops.id(j);
            long from = from(id);
            long to = to(id);
            if (to - from < size) {
                other.put((long) j, (int) (to - from));
            }
            last[j] = to == from ? 0 : (int) sorted.id(backward ? from : to - 1);
        }
    }

    /** The first place of a range from {@code id} on, or from it back. */
    private long from(long id) {
        return backward ? Math.max(to(id) - size, 0) : sorted.place(id);
    }

    /** The place behind its last. */
    private long to(long id) {
        long start = sorted.place(id);
        return backward ? start + (sorted.knows(id) ? 1 : 0) : Math.min(start + size, sorted.count());
    }

    /** The id at which operation {@code j} ends, if it sees any. */
    public long last(long j) {
        return last[(int) j] & 0xFFFFFFFFL;
    }

    /** Entries that operation {@code j} sees. */
    public int count(long j) {
        return other.isEmpty() ? size : other.getOrDefault(j, size);
    }

    /** The digest of all values that these operations see, if every present key has its first value. */
    public long digest(Values values, Ops ops, Stretch[] done) {
        // The sum of the values before each place: a range is then a difference.
        long[] sums = new long[Math.toIntExact(sorted.count() + 1)];
        byte[] scratch = new byte[values.length()];
        for (int place = 0; place + 1 < sums.length; place++) {
            sums[place + 1] = sums[place] + values.digest(sorted.id(place), scratch);
        }
        long sum = 0;
        for (Stretch part : done) {
            for (long j = part.start(); j < part.end(); j++) {
                long id = ops.id(j);
                sum += sums[(int) to(id)] - sums[(int) from(id)];
            }
        }
        return sum;
    }

    /** Bytes of memory held, roughly. */
    public long memory() {
        return sorted.memory() + last.length * 4L + other.size() * 64L;
    }
}
