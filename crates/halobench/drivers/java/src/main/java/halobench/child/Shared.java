package halobench.child;

import halobench.engine.Engine;
import halobench.spec.Kind;
import halobench.spec.Phase;
import halobench.workload.Expect;
import halobench.workload.Generator;
import halobench.workload.Mixed;
import halobench.workload.Ops;
import halobench.workload.Racing;
import halobench.workload.Ranges;
import halobench.workload.Sorted;
import halobench.workload.Versions;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What all threads of a phase share. Absent things are {@code null}: what a mix does; where ranges end; the loaded keys in
 * order, for a mix that scans; the versions that the phase writes, unless it writes first values; the background.
 *
 * @param over set when the phase's time is over, or when a thread failed
 * @param quiet set when the phase's own threads are done
 */
record Shared(
        Engine engine,
        Generator generator,
        Phase phase,
        Ops ops,
        Mixed mixed,
        Ranges ranges,
        Sorted sorted,
        Expect expect,
        Versions versions,
        Ops backgroundOps,
        Versions backgroundVersions,
        long latencyEvery,
        AtomicBoolean over,
        AtomicBoolean quiet) {

    /** What reads may see while the phase's own puts, or the background's, go on; {@code null} where nothing writes. */
    Racing racing() {
        if (backgroundVersions != null) {
            return new Racing(expect, backgroundVersions);
        }
        return phase.kind().changes() && versions != null ? new Racing(expect, versions) : null;
    }

    /** The version that operation {@code j} writes. */
    long version(long j) {
        return versions == null ? 0 : versions.base() + j + 1;
    }

    /** Names of the phase's sorts of operations, if it has several. */
    List<String> parts() {
        if (phase.kind() == Kind.MIXED) {
            return List.of("get", "put");
        }
        return phase.kind() == Kind.MIX ? List.of("read", "update", "insert", "scan", "modify") : List.of();
    }

    /** Ends everything: a thread failed. */
    void abort() {
        over.set(true);
        quiet.set(true);
    }
}
