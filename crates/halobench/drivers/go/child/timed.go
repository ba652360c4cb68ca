package child

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// outcome is what was done.
type outcome struct {
	// Operations of each thread, and of each of the background's writers.
	done, bgDone []uint64
	// Digest of the values read.
	digest uint64
}

// part is what a thread does with its session, once all have started.
type part interface {
	run(engine.Session) error
	close() error
}

// ended is one thread's end.
type ended struct {
	err        error
	start, end time.Time
}

// timed runs all threads: the part between the start of the first and the end of the last. Where one fails, the others
// stop soon, and the error says how far they came.
func timed(s *shared) (*spec.PhaseResult, *outcome, error) {
	counts := make([]progress, s.phase.Threads)
	workers := make([]*worker, s.phase.Threads)
	for t := range workers {
		workers[t] = newWorker(s, t, &counts[t])
	}
	var writers []*writer
	if b := s.phase.Background; b != nil {
		for t := range b.Threads {
			writers = append(writers, newWriter(s, t))
		}
	}
	var ready, readers, all sync.WaitGroup
	gun := make(chan struct{})
	launch := func(p part, e *ended, group *sync.WaitGroup) {
		ready.Add(1)
		group.Add(1)
		go func() {
			defer group.Done()
			// Nobody may miss the start, or the others wait for ever.
			session, err := s.engine.Session()
			ready.Done()
			<-gun
			e.start = time.Now()
			if err == nil {
				err = p.run(session)
			}
			e.end = time.Now()
			if err == nil {
				err = p.close()
			}
			if session != nil {
				if closed := session.Close(); err == nil {
					err = closed
				}
			}
			if e.err = err; err != nil {
				s.abort()
			}
		}()
	}
	ends := make([]ended, len(workers))
	for t, w := range workers {
		launch(w, &ends[t], &readers)
	}
	bgEnds := make([]ended, len(writers))
	for t, w := range writers {
		launch(w, &bgEnds[t], &all)
	}
	ready.Wait()
	stop, sampled := make(chan struct{}), make(chan struct{})
	result := &spec.PhaseResult{}
	close(gun)
	go func() {
		defer close(sampled)
		result.Memory, result.Series = sample(counts, stop, s.phase.Seconds, &s.over)
	}()
	readers.Wait()
	s.quiet.Store(true)
	all.Wait()
	close(stop)
	<-sampled

	out := &outcome{}
	var ops, puts, removals uint64
	first, last := ends[0].start, ends[0].end
	var bad wrong
	for t, w := range workers {
		out.done = append(out.done, w.done)
		out.digest += w.digest
		ops += w.done
		puts += w.puts
		bad.merge(w.wrong)
		result.LagS = max(result.LagS, w.lagS())
		if ends[t].start.Before(first) {
			first = ends[t].start
		}
		if ends[t].end.After(last) {
			last = ends[t].end
		}
	}
	for _, w := range writers {
		out.bgDone = append(out.bgDone, w.done)
		result.BackgroundOps += w.done
	}
	for _, e := range append(ends, bgEnds...) {
		if e.err != nil {
			return nil, nil, fmt.Errorf("failed after %d of %d operations: %w", ops, s.phase.Ops, e.err)
		}
	}
	if s.phase.Kind == spec.Delete {
		removals = ops
	}
	set := &s.gen.set
	result.Ops = ops
	result.Seconds = max(last.Sub(first).Seconds(), 1e-9)
	result.OpsPerS = float64(ops) / result.Seconds
	result.UserBytes = (puts+result.BackgroundOps)*uint64(set.KeyLen+set.ValueLen) + removals*uint64(set.KeyLen)
	result.Wrong, result.WrongExamples = bad.count, bad.words()
	switch s.phase.Kind {
	case spec.Read, spec.Range, spec.Iterate:
		if s.phase.Background == nil {
			words := fmt.Sprintf("%016x", out.digest)
			result.ReadDigest = &words
		}
	}
	return result, out, latencies(s, workers, writers, result)
}

// latencies puts all of them into the result.
func latencies(s *shared, workers []*worker, writers []*writer, result *spec.PhaseResult) error {
	merged := func(n int, of func(t int) *recorder) *hdrhistogram.Histogram {
		recorders := make([]*recorder, n)
		for t := range recorders {
			recorders[t] = of(t)
		}
		return merge(recorders)
	}
	whole := merged(len(workers), func(t int) *recorder { return workers[t].main })
	result.Parts = map[string]spec.Latency{}
	for i, name := range partsOf(s.phase.Kind) {
		part := merged(len(workers), func(t int) *recorder { return workers[t].parts[i] })
		whole.Merge(part)
		if part.TotalCount() > 0 {
			result.Parts[name] = percentiles(part, false)
		}
	}
	if s.phase.Background != nil {
		puts := merged(len(writers), func(t int) *recorder { return writers[t].main })
		result.Parts["background"] = percentiles(puts, false)
	}
	batches := s.phase.Batch > 1 && (s.phase.Kind == spec.Write || s.phase.Kind == spec.Delete)
	result.Latency = percentiles(whole, batches)
	var err error
	result.Histogram, err = encode(whole)
	return err
}
