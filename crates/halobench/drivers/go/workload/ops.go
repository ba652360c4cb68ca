package workload

import (
	"fmt"
	"math/bits"
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
	draws    uint64
	coins    uint64
}

// NewOps has count operations over n ids. Phases of one run differ by stream.
func NewOps(order Order, n, count, seed, stream uint64) *Ops {
	draws := Stream(seed, 16+2*stream)
	o := &Ops{order: order, n: n, count: count, draws: draws, coins: Stream(seed, 17+2*stream)}
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

// Evenly has count operations over n ids, drawn evenly: the same as the order Uniform, but each id is computed when it
// is asked for, so that it holds no memory.
func Evenly(n, count, seed, stream uint64) *Ops {
	o := NewOps(Up, n, 0, seed, stream)
	o.order, o.count = Uniform, count
	return o
}

// IDs is how many ids they visit.
func (o *Ops) IDs() uint64 { return o.n }

// Count is the number of operations.
func (o *Ops) Count() uint64 { return o.count }

// ID is the id of operation j.
func (o *Ops) ID(j uint64) uint64 {
	if o.order > Down {
		if o.list == nil {
			return Reduce(At(o.draws, j), o.n)
		}
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

// Did has the operations that each of so many threads did, from how many they are.
func (o *Ops) Did(counts []uint64) []Stretch {
	did := make([]Stretch, len(counts))
	for t, count := range counts {
		start := o.Share(t, len(counts)).Start
		did[t] = Stretch{start, start + count}
	}
	return did
}

func share(count uint64, t, threads int) uint64 {
	hi, lo := bits.Mul64(count, uint64(t))
	q, _ := bits.Div64(hi, lo, uint64(threads))
	return q
}

// Memory is the number of bytes held.
func (o *Ops) Memory() int { return cap(o.list) * 4 }
