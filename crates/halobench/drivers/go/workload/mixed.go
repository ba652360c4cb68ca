package workload

// Turn is what an operation of a mix is.
type Turn int

// The turns, in the order of their shares.
const (
	TurnRead Turn = iota
	TurnUpdate
	TurnInsert
	TurnScan
	TurnModify
)

// Mixed has all operations of a mix.
type Mixed struct {
	*Ops
	// Running sums of the shares but the last.
	sums  [4]uint64
	size  uint64
	first uint64
	// Of gets that prefer new keys, how new: computed beforehand, since a rank costs more than a get may.
	ranks []uint32
}

// NewMixed has the shares (in percent: read, update, insert, scan, modify) over the operations ops; scans of up to size
// entries; inserts take the ids from first on; latest tells whether gets prefer the newest keys.
func NewMixed(ops *Ops, shares [5]uint32, latest bool, size uint32, first uint64) *Mixed {
	m := &Mixed{Ops: ops, size: uint64(size), first: first}
	sum := uint64(0)
	for i := range m.sums {
		sum += uint64(shares[i])
		m.sums[i] = sum
	}
	if latest {
		zipf := NewZipf(ops.n)
		m.ranks = make([]uint32, ops.count)
		for j := range m.ranks {
			if m.Turn(uint64(j)) == TurnRead {
				m.ranks[j] = uint32(zipf.Rank(At(ops.draws, uint64(j))))
			}
		}
	}
	return m
}

// First is the id of the first insert.
func (m *Mixed) First() uint64 { return m.first }

// Turn is what operation j is.
func (m *Mixed) Turn(j uint64) Turn {
	draw := Reduce(At(m.coins, j), 100)
	for i, sum := range m.sums {
		if draw < sum {
			return Turn(i)
		}
	}
	return TurnModify
}

// Inserts is how many inserts there are among these operations.
func (m *Mixed) Inserts(s Stretch) (n uint64) {
	if m.sums[TurnInsert] == m.sums[TurnUpdate] {
		return 0
	}
	for j := s.Start; j < s.End; j++ {
		if m.Turn(j) == TurnInsert {
			n++
		}
	}
	return n
}

// ReadID is the id of the get that is operation j, for a thread that has inserted own ids, up to but without next.
func (m *Mixed) ReadID(j, own, next uint64) uint64 {
	if m.ranks == nil {
		return m.ID(j)
	}
	rank := uint64(m.ranks[j])
	if rank < own {
		return next - 1 - rank
	}
	return m.n - 1 - (rank - own)
}

// ScanLen is how many entries the scan that is operation j reads, if so many are there.
func (m *Mixed) ScanLen(j uint64) uint32 {
	return 1 + uint32(Reduce(Mix(At(m.coins, j)), m.size))
}

// Memory is the number of bytes held.
func (m *Mixed) Memory() int { return m.Ops.Memory() + cap(m.ranks)*4 }
