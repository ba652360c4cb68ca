package child

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// runPhase prepares a phase, starts all threads at once, measures, settles, checks, and brings expect up to date. The
// first phase is given the counters from before the open: bytes that the engine wrote ahead then are part of what the
// phase cost.
func runPhase(plan *spec.Plan, phase *spec.Phase, e engine.Engine, g *generator, expect *workload.Expect,
	opened *spec.Usage) (*spec.PhaseResult, error) {
	set := &g.set
	order, err := workload.ParseOrder(phase.Order)
	if err != nil {
		return nil, err
	}
	if phase.Ops == 0 || phase.Threads == 0 || phase.Batch == 0 || phase.RangeSize == 0 {
		return nil, fmt.Errorf("operations, threads, batch and range size must be at least 1")
	}
	if phase.Kind == spec.Write && order.VisitsOnce() && phase.Ops > set.N {
		return nil, fmt.Errorf("%d writes of %d keys in an order that visits each once", phase.Ops, set.N)
	}
	ops := workload.NewOps(order, set.N, phase.Ops, set.Seed, phase.Stream)
	harness := ops.Memory() + g.values.Memory() + expect.Memory()
	var ranges *workload.Ranges
	if phase.Kind == spec.Range {
		ranges = workload.NewRanges(ops, &g.keys, phase.RangeSize, phase.Backward)
		harness += ranges.Memory()
	}
	s := &shared{
		engine: e, gen: g, phase: phase, order: order, ops: ops, ranges: ranges, expect: expect,
		every: plan.LatencyEvery, judge: e.Stores(),
	}
	if ranges != nil {
		// What preparing left behind is not the engine's memory.
		debug.FreeOSMemory()
	}

	before := usage()
	if opened != nil {
		before.WriteBytes = opened.WriteBytes
		before.CancelledWriteBytes = opened.CancelledWriteBytes
	}
	result, done, err := timed(s)
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
			return nil, err
		}
		result.Settled = &spec.Settled{
			Seconds: time.Since(start).Seconds(), Done: idle, Usage: usageSince(before), Space: space(plan.Dir),
		}
	}
	switch {
	case phase.Kind == spec.Write && order.VisitsOnce():
		expect.WriteOnce(ops, done)
	case phase.Kind == spec.Write:
		err = expect.Overwrite(ops, done, false)
	case phase.Kind == spec.Mixed:
		err = expect.Overwrite(ops, done, true)
	case phase.Kind == spec.Delete:
		expect.Delete(ops, done)
	}
	if err != nil {
		return nil, err
	}
	result.LiveBytes = expect.Count() * uint64(set.KeyLen+set.ValueLen)
	if phase.Kind.Changes() && e.Stores() {
		bad, digest, err := state(e, g, expect)
		if err != nil {
			return nil, err
		}
		result.Digest = &digest
		all := wrong{result.Wrong, result.WrongExamples}
		all.merge(bad)
		result.Wrong, result.WrongExamples = all.count, all.words()
	}
	result.Stats = map[string]string{}
	for k, v := range e.Stats() {
		result.Stats[k] = v
	}
	return result, nil
}

// outcome is what one thread hands back.
type outcome struct {
	*worker
	err        error
	start, end time.Time
}

// timed is the part between the start of the first thread and the end of the last; with it, what each thread did.
func timed(s *shared) (*spec.PhaseResult, []workload.Stretch, error) {
	threads := s.phase.Threads
	counts := make([]progress, threads)
	outcomes := make([]outcome, threads)
	var ready, finished sync.WaitGroup
	ready.Add(threads)
	finished.Add(threads)
	gun := make(chan struct{})
	for t := range threads {
		go func() {
			defer finished.Done()
			w := newWorker(s, t, &counts[t])
			// Nobody may miss the start, or the others wait for ever.
			session, err := s.engine.Session()
			ready.Done()
			<-gun
			start := time.Now()
			if err == nil {
				err = w.run(session)
			}
			outcomes[t] = outcome{w, err, start, time.Now()}
			if session != nil {
				if err := session.Close(); err != nil && outcomes[t].err == nil {
					outcomes[t].err = err
				}
			}
		}()
	}
	ready.Wait()
	stop := make(chan struct{})
	var peak spec.Memory
	var series []spec.Point
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		peak, series = sample(counts, stop)
	}()
	close(gun)
	finished.Wait()
	close(stop)
	<-sampled

	var (
		bad         wrong
		ops, puts   uint64
		digest      uint64
		recorders   []*recorder
		done        []workload.Stretch
		first, last time.Time
	)
	for i, o := range outcomes {
		if o.err != nil {
			return nil, nil, o.err
		}
		ops += o.done
		puts += o.puts
		digest += o.digest
		recorders = append(recorders, o.latency)
		done = append(done, o.did())
		bad.merge(o.wrong)
		if i == 0 || o.start.Before(first) {
			first = o.start
		}
		if i == 0 || o.end.After(last) {
			last = o.end
		}
	}
	seconds := max(last.Sub(first).Seconds(), 1e-9)
	set := &s.gen.set
	bytes := puts * uint64(set.KeyLen+set.ValueLen)
	if s.phase.Kind == spec.Delete {
		bytes += ops * uint64(set.KeyLen)
	}
	all := merge(recorders)
	histogram, err := encode(all)
	if err != nil {
		return nil, nil, err
	}
	result := &spec.PhaseResult{
		Ops: ops, Seconds: seconds, OpsPerS: float64(ops) / seconds, UserBytes: bytes,
		Latency: percentiles(all, s.phase.Batch > 1), Histogram: histogram, Series: series, Memory: peak,
		Wrong: bad.count, WrongExamples: bad.words(),
	}
	switch s.phase.Kind {
	case spec.Read, spec.Range, spec.Iterate:
		if s.judge {
			words := fmt.Sprintf("%016x", digest)
			result.ReadDigest = &words
		}
	}
	return result, done, nil
}
