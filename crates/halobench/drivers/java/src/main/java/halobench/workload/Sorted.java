package halobench.workload;

/** The present ids in the order of their keys. It is made before anything is measured. */
public final class Sorted {
    /** By place; {@code null} where the ids below {@code count} are there and are in order. */
    private final int[] order;
    /** By id: how many present keys are smaller. */
    private final int[] rank;

    private final long count;

    /** The ids that {@code expect} has. */
    public Sorted(Keys keys, Expect expect) {
        count = expect.count();
        if (keys.inOrder() && expect.hasAllBelow(count)) {
            order = null;
            rank = null;
            return;
        }
        if (expect.ids() > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("scans of more than 2^31 keys are too much for this driver");
        }
        int[] all = sorted(keys, (int) expect.ids());
        rank = new int[all.length];
        int place = 0;
        for (int id : all) {
            rank[id] = place;
            place += expect.has(id) ? 1 : 0;
        }
        order = new int[place];
        for (int id : all) {
            if (expect.has(id)) {
                order[rank[id]] = id;
            }
        }
    }

    /** Ids below {@code n} in the order of their keys: a radix sort by 16 bits of the sort key at a time. */
    private static int[] sorted(Keys keys, int n) {
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

    /** How many there are. */
    public long count() {
        return count;
    }

    /** The place of {@code id}, or of the next behind it if it is not there. */
    public long place(long id) {
        return rank != null && id < rank.length ? rank[(int) id] : Math.min(id, count);
    }

    /** Whether {@code id} is one of them. */
    public boolean knows(long id) {
        long place = place(id);
        return place < count && id(place) == id;
    }

    /** The id at a place below {@link #count}. */
    public long id(long place) {
        return order == null ? place : order[(int) place];
    }

    /** How many of them lie from {@code id}'s to {@code last}'s, both counted if they are there. */
    public long between(long id, long last, boolean backward) {
        long from = backward ? last : id;
        long to = backward ? id : last;
        return Math.max(place(to) + (knows(to) ? 1 : 0) - place(from), 0);
    }

    /** How many of them lie from {@code id}'s to the end of all. */
    public long toEnd(long id, boolean backward) {
        return backward ? place(id) + 1 : count - place(id);
    }

    /** Bytes of memory held. */
    public long memory() {
        return order == null ? 0 : (order.length + rank.length) * 4L;
    }
}
