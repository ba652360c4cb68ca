package workload

// Arrivals says when the operations of an open loop are due: a Poisson process for each thread.
type Arrivals struct {
	seed          uint64
	threads, rate float64
}

// NewArrivals has rate operations a second, of all threads, in the phase numbered stream of a run.
func NewArrivals(seed, stream uint64, threads int, rate float64) Arrivals {
	return Arrivals{Stream(seed, 1<<32+stream), float64(threads), rate}
}

// Gap is the seconds between the arrival before and that of the batch operations from j on.
func (a *Arrivals) Gap(j, batch uint64) float64 {
	return -ln(1-Unit(At(a.seed, j))) * (float64(a.threads*float64(batch)) / a.rate)
}
