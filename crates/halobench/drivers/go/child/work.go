package child

import (
	"fmt"
	"sync/atomic"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// stride is the number of operations between two reports of progress.
const stride = 64

// partsOf names the sorts of operations of a phase that has several, those of a mix in the order of its shares.
func partsOf(kind spec.Kind) []string {
	switch kind {
	case spec.Mixed:
		return []string{"get", "put"}
	case spec.MixKind:
		return []string{"read", "update", "insert", "scan", "modify"}
	default:
		return nil
	}
}

// shared is what all threads of a phase have in common.
type shared struct {
	engine engine.Engine
	gen    *generator
	phase  *spec.Phase
	ops    *workload.Ops
	// What a mix does; nil otherwise.
	mixed *workload.Mixed
	// Where ranges end, if the phase has them.
	ranges *workload.Ranges
	// The known keys in order, for a mix that scans.
	sorted *workload.Sorted
	expect *workload.Expect
	// The versions that the phase writes; nil if it writes first values.
	versions *workload.Versions
	// The background's operations and versions; nil without one.
	bgOps      *workload.Ops
	bgVersions *workload.Versions
	every      uint64
	// False for the engine that stores nothing: its answers are not judged.
	judge bool
	// Set when the phase's time is over, or when a thread failed.
	over atomic.Bool
	// Set when the phase's own threads are done.
	quiet atomic.Bool
}

// abort ends everything: a thread failed.
func (s *shared) abort() {
	s.over.Store(true)
	s.quiet.Store(true)
}

// version is the one that operation j writes.
func (s *shared) version(j uint64) uint64 {
	if s.versions == nil {
		return 0
	}
	return s.versions.Base + j + 1
}

// racing is what reads may see while the phase's own puts, or the background's, go on; nil if none do.
func (s *shared) racing() *workload.Racing {
	switch {
	case s.bgVersions != nil:
		return &workload.Racing{Before: s.expect, Versions: s.bgVersions}
	case s.phase.Kind.Changes() && s.versions != nil:
		return &workload.Racing{Before: s.expect, Versions: s.versions}
	default:
		return nil
	}
}

// rightValue tells whether id may have this value now.
func (s *shared) rightValue(id uint64, value []byte) bool {
	if racing := s.racing(); racing != nil {
		return racing.Plausible(s.gen.values, id, value, false)
	}
	return s.expect.Check(s.gen.values, id, value)
}

// watch tells when a thread's operations begin and when it stops, and times them.
type watch struct {
	main  *recorder
	parts []*recorder
	// Nil in a closed loop.
	pace *pace
	stop *atomic.Bool
}

func newWatch(parts int, every uint64, over *atomic.Bool) watch {
	w := watch{main: newRecorder(every), stop: over}
	for range parts {
		w.parts = append(w.parts, newRecorder(every))
	}
	return w
}

// start begins the schedule of an open loop, now.
func (w *watch) start(seed, stream uint64, threads int, rate float64) (err error) {
	if rate > 0 {
		w.pace, err = newPace(workload.NewArrivals(seed, stream, threads, rate))
	}
	return err
}

// ready tells whether the batch operations from j on may begin: waits until they are due, if the loop is open; false if
// the phase is over.
func (w *watch) ready(j, batch uint64) (bool, error) {
	if w.pace == nil {
		return !w.stop.Load(), nil
	}
	return w.pace.wait(j, batch, w.stop)
}

// begin and end time an operation, where there is one sort of them.
func (w *watch) begin() int64    { return w.main.begin(w.pace) }
func (w *watch) end(start int64) { w.main.end(start) }

func (w *watch) lagS() float64 {
	if w.pace == nil {
		return 0
	}
	return float64(w.pace.lag) * 1e-9
}

func (w *watch) close() error {
	if w.pace == nil {
		return nil
	}
	return w.pace.close()
}

// worker is one thread's part.
type worker struct {
	*shared
	watch
	share    workload.Stretch
	progress *progress
	key      []byte
	value    []byte
	wrong    wrong
	// Operations done: the first ones of its share.
	done uint64
	puts uint64
	// Digest of the values read.
	digest uint64
}

func newWorker(s *shared, t int, p *progress) *worker {
	return &worker{
		shared:   s,
		watch:    newWatch(len(partsOf(s.phase.Kind)), s.every, &s.over),
		share:    s.ops.Share(t, s.phase.Threads),
		progress: p,
		key:      make([]byte, s.gen.keys.Size()),
		value:    make([]byte, s.gen.values.Size()),
	}
}

// run does it; everything in here is timed.
func (w *worker) run(session engine.Session) error {
	p := w.phase
	if err := w.start(w.gen.set.Seed, p.Stream, p.Threads, p.Rate); err != nil {
		return err
	}
	err := w.work(session)
	w.progress.done.Store(w.done)
	return err
}

func (w *worker) work(session engine.Session) error {
	batches := w.phase.Batch > 1
	switch kind := w.phase.Kind; {
	case kind == spec.Write && batches:
		return w.batches(session, true)
	case kind == spec.Delete && batches:
		return w.batches(session, false)
	case kind == spec.Write:
		return w.writes(session)
	case kind == spec.Delete:
		return w.deletes(session)
	case kind == spec.Read:
		return w.gets(session)
	case kind == spec.Mixed:
		return w.mixedOps(session)
	case kind == spec.Seek:
		return w.seeks(session)
	case kind == spec.Range:
		return w.scans(session)
	case kind == spec.Iterate:
		return w.iterate(session)
	case kind == spec.MixKind:
		return w.mix(session)
	default:
		return fmt.Errorf("this driver knows no phase %q", kind)
	}
}

func (w *worker) step() {
	w.done++
	if w.done%stride == 0 {
		w.progress.done.Store(w.done)
	}
}

// fill makes the key and the value of id at a version.
func (w *worker) fill(id, version uint64) {
	w.gen.keys.Encode(id, w.key)
	w.gen.values.Fill(id, version, w.value)
}

// wrongGet notes a get of the key that found what it must not.
func (w *worker) wrongGet(found bool, size int) {
	if !found {
		w.wrong.note("%s was not found", show(w.key))
		return
	}
	w.wrong.note("%s has a wrong or old value, of %d bytes", show(w.key), size)
}
