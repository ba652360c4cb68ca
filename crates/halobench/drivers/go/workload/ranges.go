package workload

import (
	"cmp"
	"slices"
)

// Sorted has the present ids in the order of their keys. It is made before anything is measured.
type Sorted struct {
	// By place; nil where the ids below count are there and are in order.
	order []uint32
	// By id: how many present keys are smaller.
	rank  []uint32
	count uint64
}

// NewSorted has the ids that expect has.
func NewSorted(keys *Keys, expect *Expect) *Sorted {
	s := &Sorted{count: expect.Count()}
	if keys.InOrder() && expect.HasAllBelow(s.count) {
		return s
	}
	type placed struct {
		key uint64
		id  uint32
	}
	all := make([]placed, expect.n)
	for id := range all {
		all[id] = placed{keys.SortKey(uint64(id)), uint32(id)}
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	s.rank = make([]uint32, len(all))
	s.order = make([]uint32, 0, s.count)
	for _, p := range all {
		s.rank[p.id] = uint32(len(s.order))
		if expect.Has(uint64(p.id)) {
			s.order = append(s.order, p.id)
		}
	}
	return s
}

// Count is how many there are.
func (s *Sorted) Count() uint64 { return s.count }

// Place is the place of id, or of the next behind it if it is not there.
func (s *Sorted) Place(id uint64) uint64 {
	if s.rank == nil {
		return min(id, s.count)
	}
	return uint64(s.rank[id])
}

// Knows tells whether id is one of them.
func (s *Sorted) Knows(id uint64) bool {
	place := s.Place(id)
	return place < s.count && s.ID(place) == id
}

// ID is the id at a place below Count.
func (s *Sorted) ID(place uint64) uint64 {
	if s.order == nil {
		return place
	}
	return uint64(s.order[place])
}

// Range has the places of a range of up to size entries from id on, or from it back.
func (s *Sorted) Range(id, size uint64, backward bool) Stretch {
	start := s.Place(id)
	if !backward {
		return Stretch{start, min(start+size, s.count)}
	}
	end := start
	if s.Knows(id) {
		end++
	}
	return Stretch{end - min(end, size), end}
}

// Between is how many of the known keys lie from id's to last's, both counted if they are known. id is.
func (s *Sorted) Between(id, last uint64, backward bool) uint64 {
	from, to := id, last
	if backward {
		from, to = last, id
	}
	end := s.Place(to)
	if s.Knows(to) {
		end++
	}
	return end - min(end, s.Place(from))
}

// ToEnd is how many of the known keys lie from id's to the end of all.
func (s *Sorted) ToEnd(id uint64, backward bool) uint64 {
	if backward {
		return s.Place(id) + 1
	}
	return s.count - s.Place(id)
}

// Memory is the number of bytes held.
func (s *Sorted) Memory() int { return (cap(s.order) + cap(s.rank)) * 4 }

// Ranges knows where each range of a phase must end.
type Ranges struct {
	sorted   *Sorted
	last     []uint32
	shorter  map[uint64]uint32
	size     uint32
	backward bool
}

// NewRanges has the ends of ranges of up to size >= 1 entries that start at the ids of ops.
func NewRanges(ops *Ops, sorted *Sorted, size uint32, backward bool) *Ranges {
	r := &Ranges{sorted, make([]uint32, ops.count), map[uint64]uint32{}, size, backward}
	for j := range ops.count {
		places := sorted.Range(ops.ID(j), uint64(size), backward)
		count := places.End - places.Start
		if count < uint64(size) {
			r.shorter[j] = uint32(count)
		}
		switch {
		case count == 0:
		case backward:
			r.last[j] = uint32(sorted.ID(places.Start))
		default:
			r.last[j] = uint32(sorted.ID(places.End - 1))
		}
	}
	return r
}

// Last is the id at which operation j ends, if it sees any.
func (r *Ranges) Last(j uint64) uint64 { return uint64(r.last[j]) }

// Count is the number of entries that operation j sees.
func (r *Ranges) Count(j uint64) uint32 {
	if len(r.shorter) > 0 {
		if n, ok := r.shorter[j]; ok {
			return n
		}
	}
	return r.size
}

// Digest is that of all values which these operations see, if every present key has its first value.
func (r *Ranges) Digest(values *Values, ops *Ops, did []Stretch) (digest uint64) {
	// The sum of the values before each place: a range is then a difference.
	sums := make([]uint64, r.sorted.count+1)
	for place := range r.sorted.count {
		sums[place+1] = sums[place] + values.Digest(r.sorted.ID(place))
	}
	for _, s := range did {
		for j := s.Start; j < s.End; j++ {
			places := r.sorted.Range(ops.ID(j), uint64(r.size), r.backward)
			digest += sums[places.End] - sums[places.Start]
		}
	}
	return digest
}

// Memory is the number of bytes held, roughly.
func (r *Ranges) Memory() int { return r.sorted.Memory() + cap(r.last)*4 + len(r.shorter)*24 }
