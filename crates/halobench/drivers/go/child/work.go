package child

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// stride is the number of operations between two reports of progress.
const stride = 64

// shared is what all threads of a phase have in common.
type shared struct {
	engine engine.Engine
	gen    *generator
	phase  *spec.Phase
	order  workload.Order
	ops    *workload.Ops
	ranges *workload.Ranges
	expect *workload.Expect
	every  uint64
	// False for the engine that stores nothing.
	judge bool
}

// worker is one thread's part.
type worker struct {
	*shared
	share    workload.Stretch
	pace     pace
	progress *progress
	key      []byte
	value    []byte
	latency  *recorder
	wrong    wrong
	done     uint64
	puts     uint64
	digest   uint64
}

func newWorker(s *shared, t int, p *progress) *worker {
	return &worker{
		shared:   s,
		share:    s.ops.Share(t, s.phase.Threads),
		pace:     newPace(s.phase, t),
		progress: p,
		key:      make([]byte, s.gen.keys.Size()),
		value:    make([]byte, s.gen.values.Size()),
		latency:  newRecorder(s.every),
	}
}

// did has the operations that were done: all of the share, unless time ran out.
func (w *worker) did() workload.Stretch {
	return workload.Stretch{Start: w.share.Start, End: w.share.Start + w.done}
}

// run does it; everything in here is timed.
func (w *worker) run(session engine.Session) (err error) {
	w.pace.start()
	switch kind := w.phase.Kind; {
	case kind == spec.Write && w.phase.Batch > 1:
		err = w.batches(session, true)
	case kind == spec.Delete && w.phase.Batch > 1:
		err = w.batches(session, false)
	case kind == spec.Write:
		err = w.writes(session)
	case kind == spec.Delete:
		err = w.deletes(session)
	case kind == spec.Read:
		err = w.gets(session)
	case kind == spec.Mixed:
		err = w.mixed(session)
	case kind == spec.Seek:
		err = w.withCursor(session, w.seeks)
	case kind == spec.Range:
		err = w.withCursor(session, w.scans)
	case kind == spec.Iterate:
		err = w.withCursor(session, w.iterate)
	default:
		err = fmt.Errorf("this driver knows no phase %q", kind)
	}
	w.progress.done.Store(w.done)
	return err
}

func (w *worker) withCursor(session engine.Session, work func(engine.Cursor) error) error {
	cursor, err := session.Cursor(w.phase.Backward)
	if err != nil {
		return err
	}
	return errors.Join(work(cursor), cursor.Close())
}

// next waits until operation j is due, and tells whether it is to be done at all: it is the thread's, and the phase's
// time has not run out. begin is the moment from which its latency counts, or -1 if it is not timed.
func (w *worker) next(j uint64) (begin int64, more bool) {
	if j >= w.share.End {
		return 0, false
	}
	if w.pace.free {
		return w.latency.begin(), true
	}
	due, more := w.pace.wait(w.done)
	if begin = w.latency.begin(); begin >= 0 && due >= 0 {
		begin = due
	}
	return begin, more
}

func (w *worker) step() {
	w.done++
	if w.done%stride == 0 {
		w.progress.done.Store(w.done)
	}
}

// fill makes the key and value that operation j writes.
func (w *worker) fill(j uint64) {
	id := w.ops.ID(j)
	w.gen.keys.Encode(id, w.key)
	w.gen.values.Fill(id, w.version(j), w.value)
}

// version is the one that operation j writes.
func (w *worker) version(j uint64) uint64 {
	if w.phase.Kind == spec.Write && w.order.VisitsOnce() {
		return 0
	}
	return j + 1
}

func (w *worker) writes(session engine.Session) error {
	for j := w.share.Start; ; j++ {
		if j < w.share.End {
			w.fill(j)
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		if err := session.Put(w.key, w.value); err != nil {
			return err
		}
		w.latency.end(begin)
		w.puts++
		w.step()
	}
}

func (w *worker) deletes(session engine.Session) error {
	for j := w.share.Start; ; j++ {
		if j < w.share.End {
			w.gen.keys.Encode(w.ops.ID(j), w.key)
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		if err := session.Delete(w.key); err != nil {
			return err
		}
		w.latency.end(begin)
		w.step()
	}
}

// batches has a whole batch's latency as a sample, with the making of its keys and values.
func (w *worker) batches(session engine.Session, put bool) error {
	for start := w.share.Start; ; {
		begin, more := w.next(start)
		if !more {
			return nil
		}
		stop := min(start+w.phase.Batch, w.share.End)
		for j := start; j < stop; j++ {
			var err error
			if put {
				w.fill(j)
				err = session.BatchPut(w.key, w.value)
			} else {
				w.gen.keys.Encode(w.ops.ID(j), w.key)
				err = session.BatchDelete(w.key)
			}
			if err != nil {
				return err
			}
		}
		if err := session.Commit(); err != nil {
			return err
		}
		w.latency.end(begin)
		w.done += stop - start
		if put {
			w.puts += stop - start
		}
		w.progress.done.Store(w.done)
		start = stop
	}
}

func (w *worker) gets(session engine.Session) error {
	plain := w.expect.IsPlain()
	values := w.gen.values
	for j := w.share.Start; ; j++ {
		var id uint64
		if j < w.share.End {
			id = w.ops.ID(j)
			w.gen.keys.Encode(id, w.key)
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		value, found, err := session.Get(w.key)
		if err != nil {
			return err
		}
		w.latency.end(begin)
		var right bool
		switch {
		case !found:
			right = !plain && !w.expect.Has(id)
		case plain:
			right = values.Is(id, 0, value)
		default:
			right = w.expect.Check(values, id, value)
		}
		if found {
			w.digest += fingerprint(value)
		}
		if !right && w.judge {
			w.wrongGet(found, len(value))
		}
		w.step()
	}
}

func (w *worker) mixed(session engine.Session) error {
	for j := w.share.Start; ; j++ {
		var id uint64
		put := false
		if j < w.share.End {
			if put = w.ops.Writes(j); put {
				w.fill(j)
			} else {
				id = w.ops.ID(j)
				w.gen.keys.Encode(id, w.key)
			}
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		if put {
			if err := session.Put(w.key, w.value); err != nil {
				return err
			}
			w.latency.end(begin)
			w.puts++
		} else {
			value, found, err := session.Get(w.key)
			if err != nil {
				return err
			}
			w.latency.end(begin)
			if w.judge && (!found || !workload.Plausible(w.gen.values, w.ops, id, value)) {
				w.wrongGet(found, len(value))
			}
		}
		w.step()
	}
}

func (w *worker) seeks(cursor engine.Cursor) error {
	for j := w.share.Start; ; j++ {
		if j < w.share.End {
			w.gen.keys.Encode(w.ops.ID(j), w.key)
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		found, err := cursor.Seek(w.key)
		if err != nil {
			return err
		}
		right := found && bytes.Equal(cursor.Key(), w.key)
		w.latency.end(begin)
		if !right && w.judge {
			w.wrong.note("a seek to %s did not find it", show(w.key))
		}
		w.step()
	}
}

func (w *worker) scans(cursor engine.Cursor) error {
	size := w.phase.RangeSize
	var walk walk
	for j := w.share.Start; ; j++ {
		if j < w.share.End {
			w.gen.keys.Encode(w.ops.ID(j), w.key)
		}
		begin, more := w.next(j)
		if !more {
			return nil
		}
		walk.begin(w.phase.Backward)
		var count uint32
		found, err := cursor.Seek(w.key)
		ordered := found && bytes.Equal(cursor.Key(), w.key)
		for found && err == nil {
			ordered = walk.step(cursor.Key()) && ordered
			var value []byte
			if value, err = cursor.Value(); err != nil {
				break
			}
			w.digest += fingerprint(value)
			if count++; count >= size {
				break
			}
			found, err = cursor.Next()
		}
		if err != nil {
			return err
		}
		w.latency.end(begin)
		if w.judge {
			// In order, from the right key, the right number, to the right key with its value: all were there.
			last := w.ranges.Last(j)
			id, known := w.gen.keys.Decode(walk.previous)
			right := ordered && count == w.ranges.Count(j) && known && id == last
			if right && count == size {
				value, err := cursor.Value()
				if err != nil {
					return err
				}
				right = w.expect.Check(w.gen.values, last, value)
			}
			if !right {
				w.wrong.note("a range of %d from %s was wrong", size, show(w.key))
			}
		}
		w.step()
	}
}

// iterate is one pass over everything. Its entries are the operations; none of them is timed alone.
func (w *worker) iterate(cursor engine.Cursor) error {
	size := w.gen.values.Size()
	expected := w.expect.Count()
	var walk walk
	walk.begin(w.phase.Backward)
	more, err := cursor.First()
	// The engine that stores nothing never says that it is done.
	for more && err == nil && (w.judge || w.done < expected) {
		if !walk.step(cursor.Key()) && w.judge {
			w.wrong.note("a pass returned %s out of order", show(cursor.Key()))
		}
		value, err := cursor.Value()
		if err != nil {
			return err
		}
		w.digest += fingerprint(value)
		if len(value) != size && w.judge {
			w.wrong.note("%s has a value of another length", show(walk.previous))
		}
		w.step()
		if more, err = cursor.Next(); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if w.judge && w.done != expected {
		w.wrong.note("a pass found %d keys where %d are expected", w.done, expected)
	}
	return nil
}

func (w *worker) wrongGet(found bool, size int) {
	if !found {
		w.wrong.note("%s was not found", show(w.key))
		return
	}
	w.wrong.note("%s has a wrong or old value, of %d bytes", show(w.key), size)
}

// walk checks that a cursor's keys strictly rise, or fall.
type walk struct {
	previous []byte
	any      bool
	backward bool
}

func (k *walk) begin(backward bool) {
	k.any, k.backward = false, backward
}

// step tells whether key comes behind the one before, and takes its place.
func (k *walk) step(key []byte) bool {
	right := true
	if k.any {
		order := bytes.Compare(k.previous, key)
		right = order < 0 && !k.backward || order > 0 && k.backward
	}
	k.any = true
	k.previous = append(k.previous[:0], key...)
	return right
}

// fingerprint is a value's part in the digest of everything read.
func fingerprint(value []byte) uint64 {
	n := len(value)
	if n >= 8 {
		first := binary.LittleEndian.Uint64(value)
		last := binary.LittleEndian.Uint64(value[n-8:])
		return workload.Mix(first + workload.Mix(last) + uint64(n))
	}
	var padded [8]byte
	copy(padded[:], value)
	both := binary.LittleEndian.Uint64(padded[:])
	return workload.Mix(both + workload.Mix(both) + uint64(n))
}
