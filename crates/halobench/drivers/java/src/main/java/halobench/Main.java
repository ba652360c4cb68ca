package halobench;

import halobench.child.Child;
import halobench.durability.KillTest;
import halobench.durability.Task;
import halobench.engine.Engines;
import halobench.spec.Lines;
import halobench.spec.Plan;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * The process: reads a plan, a line of JSON, from standard input, and writes events, a line of JSON each, to standard
 * output. It ends itself, removing the plan's folder, when its standard input ends: then the parent is gone.
 */
public final class Main {
    private Main() {}

    /** Takes no arguments. */
    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // What an engine prints goes elsewhere.
        System.setOut(System.err);
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> {
            // A thread that dies would leave others waiting for it.
            e.printStackTrace();
            Runtime.getRuntime().halt(101);
        });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Child.Emit emit = (kind, what) -> {
            String line = Lines.event(kind, what);
            synchronized (out) {
                out.print(line + "\n");
                out.flush();
            }
        };
        Plan plan;
        Task task;
        try {
            String line = in.readLine();
            task = Lines.task(line);
            plan = Lines.plan(line);
            if (plan == null) {
                throw new IllegalArgumentException("there is none");
            }
        } catch (RuntimeException e) {
            emit.event("failed", "reading the plan: " + Child.words(e));
            Runtime.getRuntime().halt(2);
            return;
        }
        watchParent(in, Path.of(task == null ? plan.dir() : task.dir()));
        int code = 0;
        try {
            if (task == null) {
                Child.run(plan, Engines::open, emit);
            } else {
                KillTest.run(task, emit);
            }
        } catch (Exception e) {
            e.printStackTrace();
            emit.event("failed", Child.words(e));
            code = 1;
        } catch (OutOfMemoryError e) {
            emit.event("failed", "Java's heap is too small: " + e.getMessage());
            code = 1;
        }
        // Engines may have left threads that would keep the process.
        Runtime.getRuntime().halt(code);
    }

    private static void watchParent(BufferedReader in, Path dir) {
        Thread watcher = new Thread(() -> {
            try {
                while (in.read() >= 0) {
                    // Whatever comes is not for us.
                }
            } catch (IOException e) {
                // As good as the end.
            }
            Child.remove(dir);
            Runtime.getRuntime().halt(3);
        }, "parent-watcher");
        watcher.setDaemon(true);
        watcher.start();
    }
}
