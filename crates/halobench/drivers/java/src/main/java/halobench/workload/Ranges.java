package halobench.workload;

import java.util.HashMap;
import java.util.Map;

/** Where each range of a scan phase must end, when all keys are present. */
public final class Ranges {
    private final int[] last;
    private final Map<Long, Integer> shorter = new HashMap<>();
    private final int size;

    /** The ends of ranges of {@code size >= 1} entries that start at the ids of {@code ops}. */
    public Ranges(Ops ops, Keys keys, int size, boolean backward) {
        if (ops.count() > Integer.MAX_VALUE - 8 || ops.ids() > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("ranges over more than 2^31 keys or operations are too many for this driver");
        }
        this.size = size;
        int n = (int) ops.ids();
        // Ids in the order of their keys, and each id's place in it. Both go before anything is measured.
        int[] order = keys.inOrder() ? null : sorted(keys, n);
        int[] rank = null;
        if (order != null) {
            rank = new int[n];
            for (int place = 0; place < n; place++) {
                rank[order[place]] = place;
            }
        }
        last = new int[(int) ops.count()];
        for (int j = 0; j < last.length; j++) {
            int id = (int) ops.id(j);
            long start = rank == null ? id : rank[id];
            long end = backward ? Math.max(start - size + 1, 0) : Math.min(start + size, n) - 1;
            long count = Math.abs(end - start) + 1;
            if (count < size) {
                shorter.put((long) j, (int) count);
            }
            last[j] = order == null ? (int) end : order[(int) end];
        }
    }

    /** Ids below {@code n} in the order of their keys: a radix sort by 16 bits of the sort key at a time. */
    static int[] sorted(Keys keys, int n) {
        int[] from = new int[n];
        for (int id = 0; id < n; id++) {
            from[id] = id;
        }
        int[] to = new int[n];
        for (int shift = 0; shift < 64; shift += 16) {
            int[] starts = new int[(1 << 16) + 1];
            for (int id = 0; id < n; id++) {
                starts[digit(keys, id, shift) + 1]++;
            }
            for (int d = 0; d < 1 << 16; d++) {
                starts[d + 1] += starts[d];
            }
            for (int id : from) {
                to[starts[digit(keys, id, shift)]++] = id;
            }
            int[] swap = from;
            from = to;
            to = swap;
        }
        return from;
    }

    private static int digit(Keys keys, int id, int shift) {
        return (int) (keys.sortKey(id) >>> shift) & 0xFFFF;
    }

    /** The id at which operation {@code j} ends. */
    public long last(long j) {
        return last[(int) j];
    }

    /** Entries that operation {@code j} sees. */
    public int count(long j) {
        return shorter.isEmpty() ? size : shorter.getOrDefault(j, size);
    }

    /** Bytes of memory held, roughly. */
    public long memory() {
        return last.length * 4L + shorter.size() * 64L;
    }
}
