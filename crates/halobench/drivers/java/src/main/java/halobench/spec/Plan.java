package halobench.spec;

import halobench.workload.DataSet;
import java.util.List;

/** A database's life: opened empty, worked on phase by phase, closed, reopened and checked. */
public record Plan(
        String name,
        String engine,
        String dir,
        Config config,
        DataSet set,
        List<Phase> phases,
        long settleLimitS,
        long latencyEvery) {}
