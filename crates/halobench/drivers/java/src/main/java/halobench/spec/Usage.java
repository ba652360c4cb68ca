package halobench.spec;

/** Counters of the process, or their differences over a stretch of time. */
public record Usage(
        double cpuUserS,
        double cpuSystemS,
        long switchesVoluntary,
        long switchesInvoluntary,
        long readBytes,
        long writeBytes,
        long cancelledWriteBytes) {

    /** What was used since {@code start}. */
    public Usage since(Usage start) {
        return new Usage(
                cpuUserS - start.cpuUserS,
                cpuSystemS - start.cpuSystemS,
                // Counts of threads that came and went between two readings are lost.
                Math.max(switchesVoluntary - start.switchesVoluntary, 0),
                Math.max(switchesInvoluntary - start.switchesInvoluntary, 0),
                readBytes - start.readBytes,
                writeBytes - start.writeBytes,
                cancelledWriteBytes - start.cancelledWriteBytes);
    }

    /** The same, but for the bytes written, which are those of {@code earlier}. */
    public Usage withWritesOf(Usage earlier) {
        return new Usage(cpuUserS, cpuSystemS, switchesVoluntary, switchesInvoluntary, readBytes,
                earlier.writeBytes, earlier.cancelledWriteBytes);
    }
}
