package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// The variable that makes this test program a writer to be killed: engine, class and folder.
const writerVariable = "HALOBENCH_TEST_WRITER"

const writers = 3

func TestMain(m *testing.M) {
	if what := os.Getenv(writerVariable); what != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(strings.Split(what, ",")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func config(class string) *spec.Config {
	return &spec.Config{WriteBuffer: 1 << 20, Cache: 1 << 20, Durability: class, Compression: "lz4", Threads: writers,
		ExpectedBytes: 64 << 20}
}

func key(writer int, i uint64) []byte { return fmt.Appendf(nil, "%d-%016d", writer, i) }

func value(i uint64) []byte { return fmt.Appendf(nil, "%0100d", i) }

// acked is where a writer notes how many of its puts have returned.
func acked(dir string, writer int) string { return filepath.Join(dir, "acked"+strconv.Itoa(writer)) }

func writeUntilKilled(what []string) error {
	name, class, dir := what[0], what[1], what[2]
	e, err := Open(name, filepath.Join(dir, "db"), config(class))
	if err != nil {
		return err
	}
	var failed atomic.Value
	var all sync.WaitGroup
	for t := range writers {
		all.Go(func() {
			session, err := e.Session()
			if err != nil {
				failed.Store(err)
				return
			}
			note, err := os.Create(acked(dir, t))
			if err != nil {
				failed.Store(err)
				return
			}
			for i := uint64(0); ; i++ {
				if err := session.Put(key(t, i), value(i)); err != nil {
					failed.Store(err)
					return
				}
				// What is written to a file outlives the process.
				if _, err := note.WriteAt(binary.LittleEndian.AppendUint64(nil, i+1), 0); err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	all.Wait()
	return failed.Load().(error)
}

// lost kills a writer and counts the puts that returned and are not there.
func lost(t *testing.T, name, class string) (lost, done uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%s,%s", writerVariable, name, class, dir))
	writer.Stderr = os.Stderr
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	counts := func() (n [writers]uint64, all bool) {
		all = true
		for t := range n {
			raw, err := os.ReadFile(acked(dir, t))
			if err != nil || len(raw) < 8 {
				all = false
				continue
			}
			n[t] = binary.LittleEndian.Uint64(raw)
			all = all && n[t] >= 100
		}
		return n, all
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, enough := counts(); enough {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the writers do not write")
		}
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait()
	n, _ := counts()
	e, err := Open(name, filepath.Join(dir, "db"), config(class))
	if err != nil {
		t.Fatal(err)
	}
	session, err := e.Session()
	if err != nil {
		t.Fatal(err)
	}
	for w, count := range n {
		done += count
		for i := range count {
			got, found, err := session.Get(key(w, i))
			if err != nil {
				t.Fatal(err)
			}
			if !found || string(got) != string(value(i)) {
				lost++
			}
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return lost, done
}

func TestWhatReturnedOutlivesAKilledProcess(t *testing.T) {
	for _, name := range []string{"badger", "bbolt", "pebble"} {
		for _, class := range []string{"process", "sync"} {
			lost, done := lost(t, name, class)
			t.Logf("%s %s: %d of %d lost", name, class, lost, done)
			if lost > 0 {
				t.Errorf("%s %s: %d of %d puts that returned are lost", name, class, lost, done)
			}
		}
	}
	// Not judged: the class promises nothing, and says so because of what is seen here.
	lost, done := lost(t, "pebble", "none")
	t.Logf("pebble none: %d of %d lost", lost, done)
}
