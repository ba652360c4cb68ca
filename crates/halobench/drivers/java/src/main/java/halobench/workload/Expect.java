package halobench.workload;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/**
 * What must be in the database: which ids, and which version of each.
 *
 * <p>A key's first value has version 0; overwrites have versions that are unique over a run ({@link Versions}). Threads race,
 * so the survivor of a phase is the last write of <em>some</em> thread: a bit an operation says which these are. What was
 * written in one phase (a layer, or two with the background's writers) is an epoch; a later epoch that touched an id makes
 * all earlier values of it old.
 */
public final class Expect {
    /** The writes of one phase, or of its background, and which of them are some thread's last to their id. */
    private record Layer(Versions versions, Bits last) {}

    /** What was written at the same time, and to which ids. */
    private record Epoch(List<Layer> layers, Bits touched) {}

    private final long n;
    private final Bits present;
    private final List<Epoch> epochs = new ArrayList<>();

    /** An empty database, for ids below {@code n}. */
    public Expect(long n) {
        this.n = n;
        this.present = new Bits(n);
    }

    /** The ids there may be. */
    public long ids() {
        return n;
    }

    /** How many keys there are. */
    public long count() {
        return present.count();
    }

    /** Whether every key has its first value. */
    public boolean isFirst() {
        return epochs.isEmpty();
    }

    /** Whether all ids are present, at version 0. */
    public boolean isPlain() {
        return isFirst() && count() == n;
    }

    /** Whether {@code id} has a value. */
    public boolean has(long id) {
        return present.get(id);
    }

    /** Whether all ids below {@code m} have values. */
    public boolean hasAllBelow(long m) {
        for (long id = 0; id < m; id++) {
            if (!has(id)) {
                return false;
            }
        }
        return true;
    }

    /** {@code id} was written at version 0. */
    public void insert(long id) {
        present.insert(id);
        forget(id);
    }

    /** {@code id} was deleted. */
    public void delete(long id) {
        present.remove(id);
        forget(id);
    }

    /** What was written to {@code id} before is void. */
    private void forget(long id) {
        for (Epoch epoch : epochs) {
            epoch.touched.remove(id);
        }
    }

    /** Begins what is written at the same time, by {@link #overwrite}. */
    public void beginEpoch() {
        epochs.add(new Epoch(new ArrayList<>(), new Bits(n)));
    }

    /** Of the operations that each thread did, those with an id (not negative) wrote their versions to it, in this epoch. */
    public void overwrite(Versions versions, Stretch[] done, LongUnaryOperator id) {
        Bits last = new Bits(versions.count());
        Epoch epoch = epochs.get(epochs.size() - 1);
        for (Stretch part : done) {
            Bits seen = new Bits(n);
            for (long j = part.end() - 1; j >= part.start(); j--) {
                long written = id.applyAsLong(j);
                if (written >= 0 && seen.insert(written)) {
                    last.insert(j);
                    epoch.touched.insert(written);
                    present.insert(written);
                }
            }
        }
        epoch.layers.add(new Layer(versions, last));
    }

    /** Whether these bytes are what {@code id} must have now, when nothing is writing. */
    public boolean check(Generator generator, long id, byte[] bytes, int from, int count) {
        if (!has(id)) {
            return false;
        }
        if (isFirst()) {
            return generator.values.is(id, 0, bytes, from, count);
        }
        long version = generator.values.read(id, bytes, from, count);
        if (version < 0) {
            return version == Values.UNVERSIONED;
        }
        return survives(id, version);
    }

    /** Whether {@code version}, if it was written to the present {@code id}, may be what it has now. */
    boolean survives(long id, long version) {
        // A tag binds the version to the id, so that a version in a layer's range was written to this id and no other.
        for (int e = epochs.size() - 1; e >= 0; e--) {
            Epoch epoch = epochs.get(e);
            boolean touched = epoch.touched.get(id);
            for (Layer layer : epoch.layers) {
                long j = layer.versions.operation(version);
                if (j >= 0) {
                    return touched && layer.last.get(j);
                }
            }
            if (touched) {
                return false;
            }
        }
        return version == 0;
    }

    /** Bytes of memory held, roughly. */
    public long memory() {
        long sum = present.memory();
        for (Epoch epoch : epochs) {
            sum += epoch.touched.memory() + epoch.layers.stream().mapToLong(l -> l.last.memory()).sum();
        }
        return sum;
    }
}
