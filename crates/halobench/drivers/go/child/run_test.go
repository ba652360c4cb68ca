package child

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// The phase of a case, and the encoding of its keys, as the lab's patterns say it.
var patterns = map[string]struct{ encoding, write, read, remove string }{
	"seq":       {"ordered", "up", "up", "up"},
	"reverse":   {"ordered", "down", "down", "down"},
	"random":    {"hashed", "up", "uniform", "shuffled"},
	"uniform":   {"hashed", "uniform", "uniform", "shuffled"},
	"zipfian":   {"hashed", "zipf", "zipf", "zipf"},
	"timestamp": {"timestamp", "up", "up", "up"},
	"uuid":      {"uuid", "up", "uniform", "shuffled"},
	"compat":    {"compat", "up", "up", "up"},
}

// plan is a small case: what reads or deletes is loaded first.
func plan(kind spec.Kind, pattern string) *spec.Plan {
	p := patterns[pattern]
	order := p.read
	switch kind {
	case spec.Write:
		order = p.write
	case spec.Delete:
		order = p.remove
	case spec.Iterate:
		order = "up"
	}
	own := spec.Phase{
		Case: string(kind), Kind: kind, Order: order, Ops: 600, Threads: 3, Batch: 1, RangeSize: 20, Settle: true, Stream: 1,
	}
	if kind == spec.Iterate {
		own.Threads = 1
	}
	var phases []spec.Phase
	if kind != spec.Write {
		load := own
		load.Case, load.Kind, load.Order, load.Batch, load.Stream, load.Threads = "", spec.Write, "up", 7, 0, 3
		phases = append(phases, load)
	}
	return &spec.Plan{
		Engine: "liar",
		Config: spec.Config{WriteBuffer: 1 << 20, Cache: 1 << 20, Durability: "process", Compression: "lz4", Threads: 3,
			ExpectedBytes: 1 << 20},
		Set: spec.DataSet{N: 600, Encoding: p.encoding, KeyLen: 16, ValueLen: 40, ValueKind: "half", Seed: 5},
		// The phase under test is the last one.
		Phases:       append(phases, own),
		SettleLimitS: 60, LatencyEvery: 1,
	}
}

// do runs a plan; the results of its phases and its end.
func do(t *testing.T, p *spec.Plan, open Opener) ([]*spec.PhaseResult, *spec.Ending) {
	t.Helper()
	p.Dir = t.TempDir()
	var phases []*spec.PhaseResult
	var end *spec.Ending
	err := Run(p, open, func(event spec.Event) error {
		switch {
		case event.Phase != nil:
			phases = append(phases, event.Phase)
		case event.End != nil:
			end = event.End
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return phases, end
}

// found is how many wrong answers the last phase of a plan has on a liar, and how many were found after the reopening.
func found(t *testing.T, p *spec.Plan, l lie) (phase, end uint64) {
	t.Helper()
	phases, ending := do(t, p, newLiar(l).open)
	return phases[len(phases)-1].Wrong, ending.Wrong
}

var kinds = []spec.Kind{spec.Write, spec.Read, spec.Mixed, spec.Delete, spec.Seek, spec.Range, spec.Iterate}

func TestAnHonestEngineIsRightInEveryCase(t *testing.T) {
	for _, kind := range kinds {
		for pattern := range patterns {
			for _, batch := range []uint64{1, 7} {
				for _, backward := range []bool{false, true} {
					name := fmt.Sprintf("%s %s %d %t", kind, pattern, batch, backward)
					p := plan(kind, pattern)
					last := &p.Phases[len(p.Phases)-1]
					last.Backward = backward
					samples := uint64(600)
					if kind == spec.Write || kind == spec.Delete {
						if last.Batch = batch; batch > 1 {
							samples = 3 * 29
						}
					} else if kind == spec.Iterate {
						samples = 0
					}
					phases, end := do(t, p, newLiar(honest).open)
					result := phases[len(phases)-1]
					if result.Wrong+end.Wrong > 0 {
						t.Errorf("%s: %v %v", name, result.WrongExamples, end.WrongExamples)
					}
					if result.Ops != 600 || result.OpsPerS <= 0 || result.Latency.Samples != samples {
						t.Errorf("%s: %d operations, %d samples", name, result.Ops, result.Latency.Samples)
					}
				}
			}
		}
	}
}

func TestShortValuesOfAllKindsAreRightToo(t *testing.T) {
	for _, kind := range []string{"half", "incompressible", "ramp", "text", "json"} {
		for _, size := range []int{1, 7, 9, 40} {
			p := plan(spec.Mixed, "zipfian")
			p.Set.ValueKind, p.Set.ValueLen = kind, size
			if phase, end := found(t, p, honest); phase+end > 0 {
				t.Errorf("%s of %d bytes: %d, %d wrong", kind, size, phase, end)
			}
		}
	}
}

func TestLiesAreFoundInThePhase(t *testing.T) {
	for _, c := range []struct {
		lie     lie
		kind    spec.Kind
		pattern string
	}{
		{losesKeys, spec.Write, "random"},
		{losesKeys, spec.Read, "random"},
		{losesKeys, spec.Range, "random"},
		{losesKeys, spec.Iterate, "random"},
		{losesKeys, spec.Seek, "random"},
		{losesKeys, spec.Mixed, "random"},
		{ignoresOverwrite, spec.Write, "zipfian"},
		{ignoresOverwrite, spec.Write, "uniform"},
		{ignoresOverwrite, spec.Mixed, "uniform"},
		{reordersScan, spec.Range, "random"},
		{reordersScan, spec.Range, "seq"},
		{reordersScan, spec.Iterate, "random"},
		{skipsInScan, spec.Range, "random"},
		{skipsInScan, spec.Iterate, "seq"},
		{seeksTooFar, spec.Seek, "random"},
		{seeksTooFar, spec.Range, "random"},
		{corruptsValue, spec.Read, "random"},
		{corruptsValue, spec.Write, "random"},
		{keepsDeleted, spec.Delete, "random"},
	} {
		if phase, _ := found(t, plan(c.kind, c.pattern), c.lie); phase == 0 {
			t.Errorf("the lie %d is not found by %s %s", c.lie, c.kind, c.pattern)
		}
	}
	for _, l := range []lie{reordersScan, skipsInScan} {
		p := plan(spec.Iterate, "random")
		p.Phases[1].Backward = true
		if phase, _ := found(t, p, l); phase == 0 {
			t.Errorf("the lie %d is not found by a pass backward", l)
		}
	}
}

func TestOldValuesAreFound(t *testing.T) {
	// Within a mixed phase the loaded value is plausible to any thread, so a phase of gets comes behind it.
	p := plan(spec.Mixed, "uniform")
	gets := p.Phases[1]
	gets.Kind, gets.Case, gets.Stream = spec.Read, "gets", 2
	p.Phases = append(p.Phases, gets)
	if phase, _ := found(t, p, oldValue); phase == 0 {
		t.Error("not found")
	}
}

func TestWhatIsForgottenAtTheReopeningIsFoundThen(t *testing.T) {
	phase, end := found(t, plan(spec.Write, "random"), forgetsOnReopen)
	if phase != 0 || end == 0 {
		t.Errorf("%d before, %d after", phase, end)
	}
}

// mixOf is a plan that loads 600 keys and mixes 2000 operations over them, with room for as many inserts.
func mixOf(pattern string, mix spec.Mix) *spec.Plan {
	p := plan(spec.MixKind, pattern)
	p.Set.N = 2600
	p.Phases[1].Ops, p.Phases[1].Mix = 2000, &mix
	return p
}

var mixes = map[string]spec.Mix{
	"a":   {Read: 50, Update: 50},
	"d":   {Read: 60, Insert: 40, Latest: true},
	"e":   {Scan: 80, Insert: 20},
	"f":   {Read: 50, Modify: 50},
	"all": {Read: 30, Update: 20, Insert: 20, Scan: 20, Modify: 10},
}

func TestMixesAreRight(t *testing.T) {
	for name, mix := range mixes {
		for _, pattern := range []string{"seq", "random", "zipfian", "uuid"} {
			for _, backward := range []bool{false, true} {
				p := mixOf(pattern, mix)
				p.Phases[1].Backward = backward
				// A second mix goes on where the first one ended, and a phase of gets sees what both left.
				again := p.Phases[1]
				again.Stream, again.Ops = 2, 500
				gets := plan(spec.Read, pattern).Phases[1]
				gets.Stream, gets.Case = 3, "gets"
				p.Phases = append(p.Phases, again, gets)
				phases, end := do(t, p, newLiar(honest).open)
				for i, result := range phases {
					if result.Wrong > 0 {
						t.Errorf("%s %s %t, phase %d: %v", name, pattern, backward, i, result.WrongExamples)
					}
				}
				if end.Wrong > 0 {
					t.Errorf("%s %s %t: %v", name, pattern, backward, end.WrongExamples)
				}
				sum := uint64(0)
				for _, part := range phases[1].Parts {
					sum += part.Samples
				}
				if sum != 2000 || phases[1].Latency.Samples != 2000 {
					t.Errorf("%s: %d samples in parts, %d in all", name, sum, phases[1].Latency.Samples)
				}
			}
		}
	}
}

func TestLiesAreFoundInAMix(t *testing.T) {
	for _, c := range []struct {
		lie lie
		mix string
	}{
		{losesKeys, "d"}, {ignoresOverwrite, "a"}, {ignoresOverwrite, "f"}, {reordersScan, "e"}, {skipsInScan, "e"},
		{seeksTooFar, "e"}, {corruptsValue, "d"}, {corruptsValue, "e"}, {oldValue, "f"},
	} {
		p := mixOf("uniform", mixes[c.mix])
		p.Phases[0].Order = "up"
		// Keys that are lost while loading are noted then, so that the mix would not see another lie.
		if phase, _ := found(t, p, c.lie); phase == 0 {
			t.Errorf("the lie %d is not found by the mix %s", c.lie, c.mix)
		}
	}
}

func TestWritersInTheBackgroundAreCheckedToo(t *testing.T) {
	for _, kind := range []spec.Kind{spec.Read, spec.Seek, spec.Range, spec.Iterate} {
		p := plan(kind, "random")
		p.Phases[1].Background = &spec.Background{Threads: 2, Rate: 0, Ops: 1_000_000}
		phases, end := do(t, p, newLiar(honest).open)
		if phases[1].Wrong+end.Wrong > 0 {
			t.Errorf("%s: %v %v", kind, phases[1].WrongExamples, end.WrongExamples)
		}
		if phases[1].BackgroundOps == 0 || phases[1].Parts["background"].Samples != phases[1].BackgroundOps {
			t.Errorf("%s: %d in the background", kind, phases[1].BackgroundOps)
		}
		if phases[1].ReadDigest != nil || phases[1].Digest == nil {
			t.Errorf("%s: reads that race have a digest, or the state has none", kind)
		}
	}
	p := plan(spec.Read, "random")
	p.Phases[1].Background = &spec.Background{Threads: 2, Rate: 0, Ops: 1_000_000}
	if phase, _ := found(t, p, ignoresOverwrite); phase == 0 {
		t.Error("lost overwrites of the background are not found")
	}
}

func TestValuesThatDoNotAddUpAreFound(t *testing.T) {
	// Entries in the middle of ranges and of passes are not compared one by one.
	for _, kind := range []spec.Kind{spec.Range, spec.Iterate} {
		if phase, _ := found(t, plan(kind, "random"), corruptsValue); phase == 0 {
			t.Errorf("damaged values are not found by %s", kind)
		}
	}
}

func TestPlansThatCannotBeDoneAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*spec.Plan){
		"no operations":   func(p *spec.Plan) { p.Phases[1].Ops = 0 },
		"the same number": func(p *spec.Plan) { p.Phases[1].Stream = 0 },
		"a large number":  func(p *spec.Plan) { p.Phases[1].Stream = 1 << 20 },
		"shares of 90 %":  func(p *spec.Plan) { p.Phases[1].Mix.Read -= 10 },
		"no shares":       func(p *spec.Plan) { p.Phases[1].Mix = nil },
		"no room":         func(p *spec.Plan) { p.Set.N = 610 },
		"an order":        func(p *spec.Plan) { p.Phases[1].Order = "sideways" },
		"a rate":          func(p *spec.Plan) { p.Phases[1].Rate = -1 },
		"a background":    func(p *spec.Plan) { p.Phases[1].Background = &spec.Background{Threads: 1, Ops: 1} },
		"a kind":          func(p *spec.Plan) { p.Phases[1].Kind = "juggle" },
	} {
		p := mixOf("random", mixes["d"])
		p.Dir = t.TempDir()
		spoil(p)
		if err := Run(p, newLiar(honest).open, func(spec.Event) error { return nil }); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnOpenLoopKeepsItsRateAndCountsFromTheMomentDue(t *testing.T) {
	p := plan(spec.Read, "random")
	p.Phases[1].Rate = 2000
	slow := &slowEngine{Engine: newLiar(honest)}
	phases, _ := do(t, p, func(string, string, *spec.Config) (engine.Engine, error) { return slow, nil })
	result := phases[1]
	// 600 operations at 2000 a second; one of the gets takes 100 ms, and those behind it in its thread wait.
	if result.Seconds < 0.2 {
		t.Errorf("took %g s", result.Seconds)
	}
	if result.Latency.P95Ns < 20_000_000 {
		t.Errorf("one stall of 100 ms, and only one operation in 20 waited %d ns", result.Latency.P95Ns)
	}
	if result.LagS < 0.05 {
		t.Errorf("a lag of %g s", result.LagS)
	}
}

// slowEngine's first get takes 100 ms.
type slowEngine struct {
	engine.Engine
	slept atomic.Bool
}

type slowSession struct {
	engine.Session
	e *slowEngine
}

func (e *slowEngine) Session() (engine.Session, error) {
	s, err := e.Engine.Session()
	return &slowSession{s, e}, err
}

func (s *slowSession) Get(key []byte) ([]byte, bool, error) {
	if s.e.slept.CompareAndSwap(false, true) {
		time.Sleep(100 * time.Millisecond)
	}
	return s.Session.Get(key)
}

func TestAPhaseEndsWhenItsTimeIsOver(t *testing.T) {
	p := plan(spec.Write, "uniform")
	p.Phases[0].Ops = 5_000_000
	p.Phases[0].Seconds = 0.1
	phases, end := do(t, p, newLiar(honest).open)
	if ops := phases[0].Ops; ops == 0 || ops == 5_000_000 {
		t.Errorf("%d operations", ops)
	}
	if phases[0].Wrong+end.Wrong > 0 {
		t.Errorf("%v", phases[0].WrongExamples)
	}
}

func TestHistogramsAreV2AndNotCompressed(t *testing.T) {
	phases, _ := do(t, plan(spec.Write, "seq"), newLiar(honest).open)
	raw, err := base64.StdEncoding.DecodeString(phases[0].Histogram)
	if err != nil {
		t.Fatal(err)
	}
	if cookie := binary.BigEndian.Uint32(raw); cookie != 0x1c849313 {
		t.Errorf("cookie %x", cookie)
	}
	if payload := binary.BigEndian.Uint32(raw[4:]); int(payload) != len(raw)-40 {
		t.Errorf("%d bytes of payload in %d", payload, len(raw))
	}
}
