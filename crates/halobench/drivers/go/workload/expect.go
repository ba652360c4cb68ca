package workload

import "math/bits"

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

// Stretch has numbers, such as those of operations: from Start up to End.
type Stretch struct{ Start, End uint64 }

// Versions are those of a phase's writes: of operation j, Base + j + 1.
type Versions struct {
	// The version below the first.
	Base uint64
	// How many operations there are.
	Count uint64
}

// NewVersions has those of count operations of the phase numbered stream.
func NewVersions(stream, count uint64) *Versions { return &Versions{stream << 40, count} }

// Operation is the one that writes a version, if one does.
func (v *Versions) Operation(version uint64) (j uint64, ok bool) {
	j = version - (v.Base + 1)
	return j, j < v.Count
}

// layer has the writes of one phase, or of its background.
type layer struct {
	versions *Versions
	// Operations that are some thread's last write to their id.
	last Bits
}

// epoch is what was written at the same time.
type epoch struct {
	layers []layer
	// Ids written.
	touched Bits
}

// Expect is what must be in the database: which ids, and which version of each.
//
// A key's first value has version 0; the versions of overwrites are unique over a run. Threads race, so the survivor of
// a phase is the last write of some thread. A later epoch that touched an id makes all earlier values of it old.
type Expect struct {
	n       uint64
	present Bits
	epochs  []*epoch
}

// NewExpect is an empty database, for ids below n.
func NewExpect(n uint64) *Expect { return &Expect{n: n, present: NewBits(n)} }

// Count is how many keys there are.
func (e *Expect) Count() uint64 { return e.present.Count() }

// IsFirst tells whether every key has its first value.
func (e *Expect) IsFirst() bool { return len(e.epochs) == 0 }

// IsPlain tells whether all ids are present, at version 0.
func (e *Expect) IsPlain() bool { return e.IsFirst() && e.Count() == e.n }

// Has tells whether id has a value.
func (e *Expect) Has(id uint64) bool { return e.present.Get(id) }

// HasAllBelow tells whether all ids below m have values.
func (e *Expect) HasAllBelow(m uint64) bool {
	for id := range m {
		if !e.Has(id) {
			return false
		}
	}
	return true
}

// Insert notes that id was written at version 0.
func (e *Expect) Insert(id uint64) {
	e.present.Insert(id)
	e.forget(id)
}

// Delete notes that id was deleted.
func (e *Expect) Delete(id uint64) {
	e.present.Remove(id)
	e.forget(id)
}

// forget makes void what was written to id before.
func (e *Expect) forget(id uint64) {
	for _, epoch := range e.epochs {
		epoch.touched.Remove(id)
	}
}

// BeginEpoch begins what is written at the same time, by Overwrite.
func (e *Expect) BeginEpoch() { e.epochs = append(e.epochs, &epoch{touched: NewBits(e.n)}) }

// Overwrite notes that, of the operations that each thread did, those with an id wrote their versions to it.
func (e *Expect) Overwrite(versions *Versions, did []Stretch, id func(j uint64) (uint64, bool)) {
	epoch := e.epochs[len(e.epochs)-1]
	last := NewBits(versions.Count)
	for _, s := range did {
		seen := NewBits(e.n)
		for j := s.End; j > s.Start; j-- {
			if id, writes := id(j - 1); writes && seen.Insert(id) {
				last.Insert(j - 1)
				epoch.touched.Insert(id)
				e.present.Insert(id)
			}
		}
	}
	epoch.layers = append(epoch.layers, layer{versions, last})
}

// Check tells whether value is what id must have now, when nothing is writing.
func (e *Expect) Check(values *Values, id uint64, value []byte) bool {
	if !e.Has(id) {
		return false
	}
	if e.IsFirst() {
		return values.Is(id, 0, value)
	}
	verdict, version := values.Read(id, value)
	return verdict == Unversioned || verdict == Versioned && e.survives(id, version)
}

// survives tells whether a version, if it was written to the present id, may be what it has now. A tag binds the version
// to the id, so that a version in a layer's range was written to this id and no other.
func (e *Expect) survives(id, version uint64) bool {
	for i := len(e.epochs) - 1; i >= 0; i-- {
		epoch := e.epochs[i]
		touched := epoch.touched.Get(id)
		for _, l := range epoch.layers {
			if j, written := l.versions.Operation(version); written {
				return l.last.Get(j) && touched
			}
		}
		if touched {
			return false
		}
	}
	return version == 0
}

// Memory is the number of bytes held, roughly.
func (e *Expect) Memory() int {
	words := len(e.present)
	for _, epoch := range e.epochs {
		words += len(epoch.touched)
		for _, l := range epoch.layers {
			words += len(l.last)
		}
	}
	return words * 8
}

// Racing is what reads may see while writers overwrite.
type Racing struct {
	// What was there before.
	Before *Expect
	// The writes that go on.
	Versions *Versions
}

// Plausible tells whether value is the one that id had before, or one that is being written to it. If this thread has
// written to the id itself, only what is being written counts.
func (r *Racing) Plausible(values *Values, id uint64, value []byte, written bool) bool {
	verdict, version := values.Read(id, value)
	if verdict != Versioned {
		return verdict == Unversioned
	}
	if _, writing := r.Versions.Operation(version); writing {
		return true
	}
	return !written && r.Before.Has(id) && r.Before.survives(id, version)
}
