package child

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// digestKeys is the most keys for which the digest of ranges is computed: it needs eight bytes a key.
const digestKeys = 1 << 25

// prepare computes beforehand what a phase does; with it, the bytes that this holds.
func prepare(plan *spec.Plan, index int, e engine.Engine, g *generator, expect *workload.Expect) (*shared, int, error) {
	p, set := &plan.Phases[index], &plan.Set
	order, err := workload.ParseOrder(p.Order)
	if err != nil {
		return nil, 0, err
	}
	ids := visited(plan, index)
	s := &shared{
		engine: e, gen: g, phase: p, expect: expect, every: plan.LatencyEvery, judge: e.Stores(),
		ops: workload.NewOps(order, ids, p.Ops, set.Seed, p.Stream),
	}
	harness := s.ops.Memory() + g.values.Memory() + expect.Memory()
	writers := 0
	if !writesFirst(plan, index) {
		s.versions = workload.NewVersions(p.Stream, p.Ops)
	}
	switch p.Kind {
	case spec.Write, spec.Mixed, spec.MixKind:
		writers = p.Threads
	case spec.Range:
		s.ranges = workload.NewRanges(s.ops, workload.NewSorted(&g.keys, expect), p.RangeSize, p.Backward)
		harness += s.ranges.Memory()
	}
	if p.Kind == spec.MixKind {
		if !expect.HasAllBelow(ids) {
			return nil, 0, fmt.Errorf("a mix needs the %d keys that were loaded, and some are not there", ids)
		}
		s.mixed = workload.NewMixed(s.ops, shares(p.Mix), p.Mix.Latest, p.RangeSize, firstInsert(plan, index))
		harness += s.mixed.Memory() - s.ops.Memory()
		if p.Mix.Scan > 0 {
			s.sorted = workload.NewSorted(&g.keys, expect)
			harness += s.sorted.Memory()
		}
	}
	if b := p.Background; b != nil {
		if !expect.HasAllBelow(ids) {
			// The writers would put them back, and nobody could say what a range must see.
			return nil, 0, fmt.Errorf("the background overwrites the %d keys that were loaded, and some are not there", ids)
		}
		s.bgOps = workload.Evenly(ids, b.Ops, set.Seed, p.Stream+numbers)
		s.bgVersions = workload.NewVersions(p.Stream+numbers, b.Ops)
		writers += b.Threads
	}
	if s.ranges != nil || s.sorted != nil {
		// What sorting left behind is not the engine's memory.
		debug.FreeOSMemory()
	}
	return s, harness + writers*set.ValueLen, nil
}

// apply brings what is expected up to date with what was done.
func (s *shared) apply(out *outcome) {
	ops, expect := s.ops, s.expect
	did := ops.Did(out.done)
	each := func(do func(id uint64)) {
		for _, d := range did {
			for j := d.Start; j < d.End; j++ {
				do(ops.ID(j))
			}
		}
	}
	overwrite := func(id func(j uint64) (uint64, bool)) {
		expect.BeginEpoch()
		expect.Overwrite(s.versions, did, id)
	}
	switch {
	case s.phase.Kind == spec.Write && s.versions == nil:
		each(expect.Insert)
	case s.phase.Kind == spec.Write:
		overwrite(func(j uint64) (uint64, bool) { return ops.ID(j), true })
	case s.phase.Kind == spec.Mixed:
		overwrite(func(j uint64) (uint64, bool) { return ops.ID(j), ops.Writes(j) })
	case s.phase.Kind == spec.Delete:
		each(expect.Delete)
	case s.phase.Kind == spec.MixKind:
		for _, d := range did {
			next := s.mixed.First() + s.mixed.Inserts(workload.Stretch{End: d.Start})
			for range s.mixed.Inserts(d) {
				expect.Insert(next)
				next++
			}
		}
		overwrite(func(j uint64) (uint64, bool) {
			turn := s.mixed.Turn(j)
			return s.mixed.ID(j), turn == workload.TurnUpdate || turn == workload.TurnModify
		})
	}
	if s.bgOps != nil {
		expect.BeginEpoch()
		expect.Overwrite(s.bgVersions, s.bgOps.Did(out.bgDone), func(j uint64) (uint64, bool) {
			return s.bgOps.ID(j), true
		})
	}
}

// expectedDigest is what the digest of all values read must be, where the generator alone can tell.
func (s *shared) expectedDigest(out *outcome) (digest uint64, known bool) {
	count := s.expect.Count()
	if !s.expect.IsFirst() || s.bgOps != nil || count > digestKeys {
		return 0, false
	}
	switch s.phase.Kind {
	case spec.Range:
		return s.ranges.Digest(s.gen.values, s.ops, s.ops.Did(out.done)), true
	case spec.Iterate:
		for _, done := range out.done {
			if done != count {
				return 0, false
			}
		}
		for id := range s.gen.set.N {
			if s.expect.Has(id) {
				digest += s.gen.values.Digest(id)
			}
		}
		return digest * uint64(len(out.done)), true
	default:
		return 0, false
	}
}

// runPhase prepares the phase at index, starts all threads at once, measures, settles, checks, and brings expect up to
// date. The first phase is given the counters from before the open: bytes that the engine wrote ahead then are part of
// what the phase cost.
func runPhase(plan *spec.Plan, index int, e engine.Engine, g *generator, expect *workload.Expect,
	opened *spec.Usage) (*spec.PhaseResult, error) {
	phase, set := &plan.Phases[index], &plan.Set
	s, harness, err := prepare(plan, index, e, g, expect)
	if err != nil {
		return nil, err
	}
	before := usage()
	if opened != nil {
		before.WriteBytes = opened.WriteBytes
		before.CancelledWriteBytes = opened.CancelledWriteBytes
	}
	result, out, err := timed(s)
	if err != nil {
		return nil, err
	}
	result.Usage = usageSince(before)
	result.Space = space(plan.Dir)
	result.Memory.Harness = uint64(harness)
	result.Case = phase.Case

	if phase.Settle {
		start := time.Now()
		idle, err := e.Settle(time.Duration(min(plan.SettleLimitS, math.MaxInt32)) * time.Second)
		if err != nil {
			return nil, fmt.Errorf("settling: %w", err)
		}
		result.Settled = &spec.Settled{
			Seconds: time.Since(start).Seconds(), Done: idle, Usage: usageSince(before), Space: space(plan.Dir),
		}
	}
	all := wrong{result.Wrong, result.WrongExamples}
	if digest, known := s.expectedDigest(out); known && e.Stores() && digest != out.digest {
		all.note("the values that were read do not add up to those that were written")
	}
	s.apply(out)
	result.LiveBytes = expect.Count() * uint64(set.KeyLen+set.ValueLen)
	if (phase.Kind.Changes() || phase.Background != nil) && e.Stores() {
		bad, digest, err := state(e, g, expect)
		if err != nil {
			return nil, fmt.Errorf("checking the state: %w", err)
		}
		result.Digest = &digest
		all.merge(bad)
	}
	result.Wrong, result.WrongExamples = all.count, all.words()
	result.Stats = map[string]string{}
	for k, v := range e.Stats() {
		result.Stats[k] = v
	}
	return result, nil
}
