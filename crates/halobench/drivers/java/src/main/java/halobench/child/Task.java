package halobench.child;

import halobench.engine.Session;

/** What a thread of a phase does, and how far it came: the first operations of its share. */
abstract class Task {
    long done;

    /** Does it; everything in here is timed. */
    abstract void run(Session session);

    /** Times it. */
    abstract Watch watch();
}
