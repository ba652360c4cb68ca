package workload

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// Order is the order in which operations visit ids.
type Order int

// The orders, by the names of the protocol.
const (
	Up Order = iota
	Down
	Shuffled
	Uniform
	Zipfian
)

var orders = map[string]Order{
	"up": Up, "down": Down, "shuffled": Shuffled, "uniform": Uniform, "zipf": Zipfian,
}

// ParseOrder is the order of a name.
func ParseOrder(name string) (Order, error) {
	o, known := orders[name]
	if !known {
		return 0, fmt.Errorf("this driver knows no order %q", name)
	}
	return o, nil
}

// VisitsOnce tells whether the first n operations visit every id once.
func (o Order) VisitsOnce() bool { return o <= Shuffled }

// Ops has the ids of a phase's operations: computed before the clock starts, four bytes an operation, nothing where
// the order is plain counting.
type Ops struct {
	order    Order
	n, count uint64
	list     []uint32
	coins    uint64
}

// NewOps has count operations over n ids. Phases of one run differ by stream.
func NewOps(order Order, n, count, seed, stream uint64) *Ops {
	o := &Ops{order: order, n: n, count: count, coins: Stream(seed, 17+2*stream)}
	draws := Stream(seed, 16+2*stream)
	permutation := NewPermutation(n, Stream(seed, 4))
	if order > Down {
		o.list = make([]uint32, count)
	}
	switch order {
	case Shuffled:
		for j := range o.list {
			o.list[j] = uint32(permutation.Apply(uint64(j) % n))
		}
	case Uniform:
		for j := range o.list {
			o.list[j] = uint32(Reduce(At(draws, uint64(j)), n))
		}
	case Zipfian:
		zipf := NewZipf(n)
		for j := range o.list {
			o.list[j] = uint32(permutation.Apply(zipf.Rank(At(draws, uint64(j)))))
		}
	}
	return o
}

// Count is the number of operations.
func (o *Ops) Count() uint64 { return o.count }

// ID is the id of operation j.
func (o *Ops) ID(j uint64) uint64 {
	if o.order > Down {
		return uint64(o.list[j])
	}
	if j >= o.n {
		j %= o.n
	}
	if o.order == Up {
		return j
	}
	return o.n - 1 - j
}

// Writes tells whether operation j of a mixed phase is a write.
func (o *Ops) Writes(j uint64) bool { return At(o.coins, j)&1 == 1 }

// Share has the operations of thread t of threads.
func (o *Ops) Share(t, threads int) Stretch {
	return Stretch{share(o.count, t, threads), share(o.count, t+1, threads)}
}

func share(count uint64, t, threads int) uint64 {
	hi, lo := bits.Mul64(count, uint64(t))
	q, _ := bits.Div64(hi, lo, uint64(threads))
	return q
}

// Memory is the number of bytes held.
func (o *Ops) Memory() int { return cap(o.list) * 4 }

// Ranges knows where each range of a phase must end, when all keys are present.
type Ranges struct {
	last    []uint32
	shorter map[uint64]uint32
	size    uint32
}

// NewRanges has the ends of ranges of size >= 1 entries that start at the ids of ops, and go backward if so asked.
func NewRanges(ops *Ops, keys *Keys, size uint32, backward bool) *Ranges {
	type placed struct {
		key uint64
		id  uint32
	}
	var order []placed
	var rank []uint32
	if !keys.InOrder() {
		order = make([]placed, ops.n)
		for id := range order {
			order[id] = placed{keys.SortKey(uint64(id)), uint32(id)}
		}
		slices.SortFunc(order, func(a, b placed) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
		})
		rank = make([]uint32, ops.n)
		for place, p := range order {
			rank[p.id] = uint32(place)
		}
	}
	r := &Ranges{last: make([]uint32, ops.count), shorter: map[uint64]uint32{}, size: size}
	for j := range ops.count {
		start := ops.ID(j)
		if rank != nil {
			start = uint64(rank[start])
		}
		var end, seen uint64
		if backward {
			seen = min(uint64(size), start+1)
			end = start + 1 - seen
		} else {
			seen = min(uint64(size), ops.n-start)
			end = start + seen - 1
		}
		if seen < uint64(size) {
			r.shorter[j] = uint32(seen)
		}
		if order != nil {
			end = uint64(order[end].id)
		}
		r.last[j] = uint32(end)
	}
	return r
}

// Last is the id at which operation j ends.
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

// Memory is the number of bytes held, roughly.
func (r *Ranges) Memory() int { return cap(r.last)*4 + len(r.shorter)*24 }
