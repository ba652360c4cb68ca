package halobench.spec;

/** Threads that write while a phase of reads goes on: how many, writes a second of all of them (0: no limit), most writes. */
public record Background(int threads, double rate, long ops) {}
