package child

import (
	"errors"
	"fmt"
	"math"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// numbers is where the numbers of phases end, and those of their backgrounds begin.
const numbers = 1 << 20

// visited is how many ids a plan's phase visits: those loaded before it, or all.
func visited(plan *spec.Plan, index int) uint64 {
	loaded, any := uint64(0), false
	if plan.Phases[index].Kind != spec.Write {
		for _, p := range plan.Phases[:index] {
			if p.Kind == spec.Write && p.Order == "up" {
				loaded, any = max(loaded, p.Ops), true
			}
		}
	}
	if !any {
		return plan.Set.N
	}
	return min(loaded, plan.Set.N)
}

// shares are those of a mix, in their order.
func shares(m *spec.Mix) [5]uint32 { return [5]uint32{m.Read, m.Update, m.Insert, m.Scan, m.Modify} }

// inserts is how many there are among all operations of a phase, done or not.
func inserts(set *spec.DataSet, p *spec.Phase) uint64 {
	if p.Kind != spec.MixKind || p.Mix == nil || p.Mix.Insert == 0 {
		return 0
	}
	coins := workload.NewOps(workload.Up, 1, p.Ops, set.Seed, p.Stream)
	return workload.NewMixed(coins, shares(p.Mix), false, 1, 0).Inserts(workload.Stretch{End: p.Ops})
}

// firstInsert is the id of the first insert of the mix at index.
func firstInsert(plan *spec.Plan, index int) uint64 {
	first := visited(plan, index)
	for i := range plan.Phases[:index] {
		first += inserts(&plan.Set, &plan.Phases[i])
	}
	return first
}

// writesFirst tells whether the puts of the phase at index write first values: the head of the plan, each id once.
func writesFirst(plan *spec.Plan, index int) bool {
	p := &plan.Phases[index]
	order, err := workload.ParseOrder(p.Order)
	return index == 0 && p.Kind == spec.Write && err == nil && order.VisitsOnce()
}

// phaseName is what people call a phase.
func phaseName(p *spec.Phase) string {
	if p.Case == "" {
		return "load"
	}
	return p.Case
}

// checkPlan fails, in words, on a plan that cannot be done.
func checkPlan(plan *spec.Plan) error {
	for i := range plan.Phases {
		if err := checkPhase(plan, i); err != nil {
			return fmt.Errorf("%s: %w", phaseName(&plan.Phases[i]), err)
		}
	}
	return nil
}

func checkPhase(plan *spec.Plan, index int) error {
	p := &plan.Phases[index]
	order, err := workload.ParseOrder(p.Order)
	if err != nil {
		return err
	}
	if p.Ops == 0 || p.Threads <= 0 || p.Batch == 0 || p.RangeSize == 0 {
		return errors.New("operations, threads, batch and range size must be at least 1")
	}
	if p.Stream >= numbers {
		return fmt.Errorf("the phase's number is %d: it must be below %d", p.Stream, numbers)
	}
	for i := range plan.Phases[:index] {
		if other := &plan.Phases[i]; other.Stream == p.Stream {
			return fmt.Errorf("it has the same number, %d, as %s", p.Stream, phaseName(other))
		}
	}
	n := plan.Set.N
	if p.Kind == spec.Write && order.VisitsOnce() && p.Ops > n {
		return fmt.Errorf("%d writes of %d keys in an order that visits each once", p.Ops, n)
	}
	sane := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	if !sane(p.Rate) || !sane(p.Seconds) || p.Background != nil && !sane(p.Background.Rate) {
		return errors.New("rates and seconds must be numbers from 0 on")
	}
	if p.Rate > 0 && p.Kind == spec.Iterate {
		return errors.New("a pass over everything has no arrivals: leave the rate out")
	}
	if b := p.Background; b != nil {
		if p.Kind.Changes() {
			return errors.New("writers in the background go with gets, seeks, ranges and passes only")
		}
		if b.Threads <= 0 || b.Ops == 0 {
			return errors.New("the background needs at least one thread and one operation")
		}
	}
	if p.Kind != spec.MixKind {
		return nil
	}
	if p.Mix == nil {
		return errors.New("a mix without its shares")
	}
	sum := uint64(0)
	for _, share := range shares(p.Mix) {
		sum += uint64(share)
	}
	if sum != 100 {
		return fmt.Errorf("the shares of a mix add up to %d %%, not to 100", sum)
	}
	if end := firstInsert(plan, index) + inserts(&plan.Set, p); end > n {
		return fmt.Errorf("the mix inserts ids up to %d, but the data set has %d", end, n)
	}
	return nil
}
