package child

import (
	"errors"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// inspected: one scan of a mix in so many is gone over again, untimed, and every entry checked.
const inspected = 64

// mixer is a thread's part of a mix.
//
// While threads write, a read may return what was there before or any version that the phase writes to that key, but
// behind a thread's own put not what was there before. Scans are judged by their order and by the known keys, which are
// always there; what the mix inserts may or may not be seen, except that a thread's gets must find its own inserts.
type mixer struct {
	*worker
	racing *workload.Racing
	// Loaded ids that this thread has overwritten.
	mine workload.Bits
	// Inserted ids lie below here.
	end uint64
	// The id of the thread's next insert, and how many it has done.
	next, own uint64
	found     walk
}

func (w *worker) mix(session engine.Session) error {
	m := &mixer{worker: w, racing: w.racing(), mine: workload.NewBits(w.mixed.IDs())}
	m.next = w.mixed.First() + w.mixed.Inserts(workload.Stretch{End: w.share.Start})
	m.end = m.next + w.mixed.Inserts(workload.Stretch{Start: w.share.Start, End: w.ops.Count()})
	for j := w.share.Start; j < w.share.End; j++ {
		turn := w.mixed.Turn(j)
		id := w.mixed.ID(j)
		switch turn {
		case workload.TurnInsert:
			id = m.next
			w.fill(id, 0)
		case workload.TurnUpdate, workload.TurnModify:
			w.fill(id, w.version(j))
		case workload.TurnRead:
			id = w.mixed.ReadID(j, m.own, m.next)
			w.gen.keys.Encode(id, w.key)
		case workload.TurnScan:
			w.gen.keys.Encode(id, w.key)
		}
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		if err := m.do(session, turn, j, id); err != nil {
			return err
		}
		w.step()
	}
	return nil
}

// do does an operation of which the key and the value are made.
func (m *mixer) do(session engine.Session, turn workload.Turn, j, id uint64) error {
	part := m.parts[turn]
	begin := part.begin(m.pace)
	switch turn {
	case workload.TurnScan:
		return m.scan(session, part, begin, j, id)
	case workload.TurnRead, workload.TurnModify:
		value, found, err := session.Get(m.key)
		if err != nil {
			return err
		}
		size := len(value)
		if turn == workload.TurnRead {
			part.end(begin)
		}
		// What was read is judged before a put, within the time of a modify: it is lent until then.
		right := found && m.right(id, value)
		if turn == workload.TurnModify {
			if err := session.Put(m.key, m.value); err != nil {
				return err
			}
			part.end(begin)
			m.puts++
			m.mine.Insert(id)
		}
		if !right && m.judge {
			m.wrongGet(found, size)
		}
	default:
		if err := session.Put(m.key, m.value); err != nil {
			return err
		}
		part.end(begin)
		m.puts++
		if turn == workload.TurnInsert {
			m.next++
			m.own++
		} else {
			m.mine.Insert(id)
		}
	}
	return nil
}

// right tells whether id may have this value now.
func (m *mixer) right(id uint64, value []byte) bool {
	switch {
	case id < m.mixed.IDs():
		return m.racing.Plausible(m.gen.values, id, value, m.mine.Get(id))
	case id >= m.mixed.First() && id < m.end:
		return m.gen.values.Is(id, 0, value)
	default:
		// An earlier mix inserted it.
		return m.racing.Plausible(m.gen.values, id, value, false)
	}
}

func (m *mixer) scan(session engine.Session, part *recorder, begin int64, j, id uint64) (err error) {
	size, backward := m.mixed.ScanLen(j), m.phase.Backward
	cursor, err := session.Cursor(backward)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	if err := m.found.run(cursor, m.key, size, backward); err != nil {
		return err
	}
	part.end(begin)
	if !m.judge {
		return nil
	}
	right, err := m.rightScan(cursor, id, size)
	if err == nil && right && m.done%inspected == 0 {
		right, err = m.inspect(cursor, id)
	}
	if err == nil && !right {
		m.wrong.note("a scan of %d from %s was wrong", size, show(m.key))
	}
	return err
}

// rightScan: the scan from the loaded id found its key first, then others in order; no known key was left out, and if it
// ended early, that was at the end of all keys. The last value is one that its key may have.
func (m *mixer) rightScan(cursor engine.Cursor, id uint64, size uint32) (bool, error) {
	found, backward := &m.found, m.phase.Backward
	last, known := m.gen.keys.Decode(found.previous)
	if !found.ordered || !found.exact || !known || last >= m.gen.set.N {
		return false, nil
	}
	between := m.sorted.Between(id, last, backward)
	if between > uint64(found.count) || found.count != size && between != m.sorted.ToEnd(id, backward) {
		return false, nil
	}
	if found.count < size {
		return true, nil
	}
	value, err := cursor.Value()
	return err == nil && m.right(last, value), err
}

// inspect goes over a scan again, on the same view: every key is one that may be there, none that must be is left out,
// and every value is one that its key may have.
func (m *mixer) inspect(cursor engine.Cursor, id uint64) (bool, error) {
	count, backward := m.found.count, m.phase.Backward
	var again walk
	again.begin(backward)
	var last, known uint64
	more, err := cursor.Seek(m.key)
	for more && err == nil {
		if !again.step(cursor.Key()) {
			return false, nil
		}
		at, decodes := m.gen.keys.Decode(cursor.Key())
		if !decodes || at >= m.gen.set.N {
			return false, nil
		}
		value, err := cursor.Value()
		if err != nil || !m.right(at, value) {
			return false, err
		}
		if m.expect.Has(at) {
			known++
		}
		last = at
		if again.count++; again.count >= count {
			break
		}
		if more, err = cursor.Next(); err != nil {
			return false, err
		}
	}
	return again.count == count && known == m.sorted.Between(id, last, backward), err
}
