package workload

import (
	"errors"
	"math/bits"
)

// Bits is a set of small numbers.
type Bits []uint64

// NewBits is the empty set of numbers below n.
func NewBits(n uint64) Bits { return make(Bits, (n+63)/64) }

// Get tells whether i is in it.
func (b Bits) Get(i uint64) bool {
	return i/64 < uint64(len(b)) && b[i/64]>>(i%64)&1 == 1
}

// Insert puts i in, and tells whether it was not there.
func (b Bits) Insert(i uint64) bool {
	fresh := !b.Get(i)
	b[i/64] |= 1 << (i % 64)
	return fresh
}

// Remove takes i out.
func (b Bits) Remove(i uint64) { b[i/64] &^= 1 << (i % 64) }

// Count is how many are in it.
func (b Bits) Count() uint64 {
	var n int
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return uint64(n)
}

// overwrites are the repeated writes of one phase.
type overwrites struct {
	ops *Ops
	// Operations that are some thread's last write to their id.
	last Bits
	// Ids written.
	touched Bits
}

// Expect is what must be in the database: which ids, and which version of each. Threads race, so that the survivor
// of repeated writes is the last write of some thread.
type Expect struct {
	n       uint64
	present Bits
	over    *overwrites
}

// NewExpect is an empty database, for ids below n.
func NewExpect(n uint64) *Expect { return &Expect{n: n, present: NewBits(n)} }

// Count is how many keys there are.
func (e *Expect) Count() uint64 { return e.present.Count() }

// IsPlain tells whether all ids are present, at version 0.
func (e *Expect) IsPlain() bool { return e.over == nil && e.Count() == e.n }

// Has tells whether id has a value.
func (e *Expect) Has(id uint64) bool { return e.present.Get(id) }

// Stretch has the operations that a thread did: from Start up to End.
type Stretch struct{ Start, End uint64 }

// WriteOnce notes that the operations wrote version 0.
func (e *Expect) WriteOnce(ops *Ops, done []Stretch) {
	for _, s := range done {
		for j := s.Start; j < s.End; j++ {
			e.present.Insert(ops.ID(j))
		}
	}
}

// Overwrite notes that operation j wrote version j + 1; in a mixed phase, only where its coin says so.
func (e *Expect) Overwrite(ops *Ops, done []Stretch, mixed bool) error {
	if e.over != nil {
		return errors.New("only one phase of a run may write keys repeatedly")
	}
	over := &overwrites{ops, NewBits(ops.Count()), NewBits(e.n)}
	for _, s := range done {
		seen := NewBits(e.n)
		for j := s.End; j > s.Start; j-- {
			id := ops.ID(j - 1)
			if (!mixed || ops.Writes(j-1)) && seen.Insert(id) {
				over.last.Insert(j - 1)
				over.touched.Insert(id)
				e.present.Insert(id)
			}
		}
	}
	e.over = over
	return nil
}

// Delete notes that every operation deleted.
func (e *Expect) Delete(ops *Ops, done []Stretch) {
	for _, s := range done {
		for j := s.Start; j < s.End; j++ {
			e.present.Remove(ops.ID(j))
		}
	}
}

// Check tells whether value is what id must have now, when nothing is writing.
func (e *Expect) Check(values *Values, id uint64, value []byte) bool {
	if !e.Has(id) {
		return false
	}
	if e.over == nil {
		return values.Is(id, 0, value)
	}
	verdict, version := values.Read(id, value)
	switch {
	case verdict == Wrong:
		return false
	case verdict == Unversioned:
		return true
	case version == 0:
		return !e.over.touched.Get(id)
	default:
		return e.over.last.Get(version-1) && e.over.ops.ID(version-1) == id
	}
}

// Memory is the number of bytes held, roughly.
func (e *Expect) Memory() int {
	n := len(e.present) * 8
	if e.over != nil {
		n += e.over.ops.Memory() + (len(e.over.last)+len(e.over.touched))*8
	}
	return n
}

// Plausible tells whether value is one that a mixed phase over a loaded set may show for id while it runs: the loaded
// one, or one that some operation of the phase writes to id.
func Plausible(values *Values, ops *Ops, id uint64, value []byte) bool {
	verdict, version := values.Read(id, value)
	switch {
	case verdict == Wrong:
		return false
	case verdict == Unversioned || version == 0:
		return true
	default:
		return version <= ops.Count() && ops.ID(version-1) == id && ops.Writes(version-1)
	}
}
