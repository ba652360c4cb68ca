// Package durability is the driver's part in the test of durability classes: it commits numbered writes until it is
// killed, or looks what is left after a kill. docs/lab/durability.md has the protocol and the numbers behind it.
package durability

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
	"github.com/zeebo/xxh3"
)

// Task is what the parent wants.
type Task struct {
	// write or check.
	Mode   string      `json:"mode"`
	Engine string      `json:"engine"`
	Dir    string      `json:"dir"`
	DB     string      `json:"db"`
	Config spec.Config `json:"config"`
	Ledger string      `json:"ledger"`
	Dump   string      `json:"dump"`
	Shape  shape       `json:"shape"`
	Close  bool        `json:"close"`
}

type shape struct {
	Threads uint64 `json:"threads"`
	Slots   uint64 `json:"slots"`
	Batch   uint64 `json:"batch"`
	Seed    uint64 `json:"seed"`
}

type checked struct {
	OpenS         float64 `json:"open_s"`
	Entries       uint64  `json:"entries"`
	Disagreements uint64  `json:"disagreements"`
	Example       string  `json:"example"`
}

// TaskIn is the task in a line; nil if it is no task.
func TaskIn(line []byte) *Task {
	var in struct {
		Durability *Task `json:"durability"`
	}
	if json.Unmarshal(line, &in) != nil {
		return nil
	}
	return in.Durability
}

// Run does a task, and returns the exit code.
func Run(task *Task) int {
	var found *checked
	var err error
	if task.Mode == "write" {
		err = write(task)
	} else {
		found, err = check(task)
	}
	if err != nil {
		fail(err)
		return 1
	}
	say(map[string]any{"checked": found})
	return 0
}

func say(what any) {
	line, err := json.Marshal(what)
	if err == nil {
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
}

func fail(err error) { say(map[string]string{"failed": err.Error()}) }

// States of the ledger, and its lines of 64 bytes.
const (
	opening = 1
	open    = 2
	line    = 8
)

// ledger is the file that tells how far each thread is, mapped.
type ledger []uint64

func openLedger(task *Task) (ledger, error) {
	file, err := os.OpenFile(task.Ledger, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	words := int(line * (1 + task.Shape.Threads))
	bytes, err := syscall.Mmap(int(file.Fd()), 0, 8*words, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", task.Ledger, err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&bytes[0])), words), nil
}

func (l ledger) set(word int, value uint64) { atomic.StoreUint64(&l[word], value) }

// work makes keys, values and commits.
type work struct {
	shape
	keySalt, valueSalt uint64
}

func newWork(s shape) work {
	return work{s, workload.Stream(s.Seed, 1), workload.Stream(s.Seed, 2)}
}

func (w *work) keysIn(slot uint64) uint64 {
	if slot%2 == 1 {
		return w.Batch
	}
	return 1
}

func (w *work) id(thread, slot, index uint64) uint64 { return (thread*w.Slots+slot)*w.Batch + index }

// has tells whether a key has this id.
func (w *work) has(id uint64) bool {
	return id < w.Threads*w.Slots*w.Batch && id%w.Batch < w.keysIn(id/w.Batch%w.Slots)
}

func (w *work) key(id uint64) []byte {
	return fmt.Appendf(nil, "%016x", workload.Mix(id+w.keySalt))
}

func (w *work) idOf(key []byte) (uint64, bool) {
	var number uint64
	if len(key) != 16 {
		return 0, false
	}
	for _, b := range key {
		switch {
		case b >= '0' && b <= '9':
			number = number<<4 | uint64(b-'0')
		case b >= 'a' && b <= 'f':
			number = number<<4 | uint64(b-'a'+10)
		default:
			return 0, false
		}
	}
	id := workload.Unmix(number) - w.keySalt
	return id, w.has(id)
}

func (w *work) removes(number, index uint64) bool {
	return index > 0 && index == w.Batch-1 && number/w.Slots%2 == 1
}

func (w *work) value(id, number uint64, out []byte) []byte {
	tag := workload.Mix(workload.Mix(id+w.valueSalt) + number)
	length := 16 + int(workload.Reduce(workload.Mix(tag), 512))
	if id/w.Batch%w.Slots%32 == 0 {
		length += 8192
	}
	out = binary.LittleEndian.AppendUint64(out[:0], number)
	for j := uint64(0); len(out) < length; j++ {
		out = binary.LittleEndian.AppendUint64(out, workload.At(tag, j))
	}
	return out[:length]
}

func openEngine(task *Task, l ledger) (engine.Engine, float64, error) {
	if err := os.MkdirAll(task.DB, 0o755); err != nil {
		return nil, 0, err
	}
	l.set(0, opening)
	start := time.Now()
	e, err := engine.Open(task.Engine, task.DB, &task.Config)
	if err != nil {
		return nil, 0, err
	}
	took := time.Since(start)
	if !e.Stores() {
		return nil, 0, fmt.Errorf("%s stores nothing", task.Engine)
	}
	l.set(1, uint64(took.Nanoseconds()))
	return e, took.Seconds(), nil
}

// write commits until killed; it returns only if the engine fails.
func write(task *Task) error {
	l, err := openLedger(task)
	if err != nil {
		return err
	}
	e, _, err := openEngine(task, l)
	if err != nil {
		return err
	}
	l.set(0, open)
	failed := make(chan error)
	for thread := uint64(0); thread < task.Shape.Threads; thread++ {
		go func() { failed <- commits(task, e, l, thread) }()
	}
	return <-failed
}

func commits(task *Task, e engine.Engine, l ledger, thread uint64) error {
	w := newWork(task.Shape)
	session, err := e.Session()
	if err != nil {
		return err
	}
	at := int(line * (1 + thread))
	var value []byte
	for number := l[at+1] + 1; ; number++ {
		slot := number % w.Slots
		keys := w.keysIn(slot)
		l.set(at, number)
		for index := uint64(0); index < keys && err == nil; index++ {
			id := w.id(thread, slot, index)
			if w.removes(number, index) {
				err = session.BatchDelete(w.key(id))
				continue
			}
			value = w.value(id, number, value)
			if keys == 1 {
				err = session.Put(w.key(id), value)
			} else {
				err = session.BatchPut(w.key(id), value)
			}
		}
		if err == nil && keys > 1 {
			err = session.Commit()
		}
		if err != nil {
			return fmt.Errorf("commit %d of thread %d: %w", number, thread, err)
		}
		l.set(at+1, number)
	}
}

// check writes all entries to the dump, and asks for each key once more by Get.
func check(task *Task) (*checked, error) {
	w := newWork(task.Shape)
	l, err := openLedger(task)
	if err != nil {
		return nil, err
	}
	e, openS, err := openEngine(task, l)
	if err != nil {
		return nil, err
	}
	found := &checked{OpenS: openS}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	// What the scan found of each id: a digest of its value, 0 for none.
	scanned := make([]uint64, task.Shape.Threads*task.Shape.Slots*task.Shape.Batch)
	if err := scan(task, &w, session, found, scanned); err != nil {
		return nil, err
	}
	for id, digest := range scanned {
		if !w.has(uint64(id)) {
			continue
		}
		value, there, err := session.Get(w.key(uint64(id)))
		if err != nil {
			return nil, fmt.Errorf("get: %w", err)
		}
		got := uint64(0)
		if there {
			got = xxh3.Hash(value) | 1
		}
		if got != digest {
			found.Disagreements++
			found.Example = "get and the scan say different things of a key"
		}
	}
	if err := session.Close(); err != nil {
		return nil, err
	}
	if task.Close {
		err = e.Close()
	}
	return found, err
}

func scan(task *Task, w *work, session engine.Session, found *checked, scanned []uint64) error {
	file, err := os.Create(task.Dump)
	if err != nil {
		return err
	}
	dump := bufio.NewWriter(file)
	cursor, err := session.Cursor(false)
	if err != nil {
		return err
	}
	more, err := cursor.First()
	for ; more && err == nil; more, err = cursor.Next() {
		if found.Entries++; found.Entries > 2*uint64(len(scanned)) {
			return fmt.Errorf("a scan does not end: %d entries, %d keys", found.Entries, len(scanned))
		}
		key := cursor.Key()
		value, err := cursor.Value()
		if err != nil {
			return fmt.Errorf("entry %d: %w", found.Entries, err)
		}
		if id, known := w.idOf(key); known {
			scanned[id] = xxh3.Hash(value) | 1
		}
		var lengths [8]byte
		binary.LittleEndian.PutUint32(lengths[:4], uint32(len(key)))
		binary.LittleEndian.PutUint32(lengths[4:], uint32(len(value)))
		for _, part := range [][]byte{lengths[:], key, value} {
			if _, err := dump.Write(part); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return fmt.Errorf("behind entry %d: %w", found.Entries, err)
	}
	if err := cursor.Close(); err != nil {
		return err
	}
	if err := dump.Flush(); err != nil {
		return err
	}
	return file.Close()
}
