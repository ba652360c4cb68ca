package child

import (
	"testing"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// Every engine does every kind of phase, rightly, and all end in the same states and read the same values.
func TestEnginesAgree(t *testing.T) {
	for _, kind := range append(kinds, spec.MixKind) {
		for _, backward := range []bool{false, true} {
			if backward && kind != spec.Range && kind != spec.Iterate && kind != spec.MixKind {
				continue
			}
			digests := map[string]string{}
			for _, name := range []string{"badger", "bbolt", "pebble"} {
				p := plan(kind, "random")
				if kind == spec.MixKind {
					p = mixOf("random", mixes["all"])
				}
				p.Engine = name
				for i := range p.Phases {
					p.Phases[i].Settle = false
				}
				last := &p.Phases[len(p.Phases)-1]
				last.Backward = backward
				switch kind {
				case spec.Read, spec.Seek, spec.Range, spec.Iterate:
					// Once more, while others write.
					again := *last
					again.Stream, again.Case = 2, "again"
					again.Background = &spec.Background{Threads: 1, Rate: 20_000, Ops: 100_000}
					p.Phases = append(p.Phases, again)
				}
				phases, end := do(t, p, engine.Open)
				for _, result := range phases {
					if result.Wrong > 0 {
						t.Errorf("%s %s: %v", name, kind, result.WrongExamples)
					}
				}
				if end.Wrong > 0 {
					t.Errorf("%s %s, reopened: %v", name, kind, end.WrongExamples)
				}
				result := phases[min(len(phases)-1, 1)]
				if kind != spec.Mixed && kind != spec.MixKind && result.Digest != nil {
					digests[*result.Digest] = name
				}
				if result.ReadDigest != nil {
					digests["read "+*result.ReadDigest] = name
				}
			}
			if len(digests) > 1 {
				t.Errorf("%s: %v", kind, digests)
			}
		}
	}
}

func TestEnginesRefuseClassesThatTheyDoNotHave(t *testing.T) {
	for _, name := range []string{"badger", "bbolt", "pebble"} {
		for _, class := range []string{"none", "process", "interval", "sync"} {
			config := plan(spec.Write, "random").Config
			config.Durability = class
			e, err := engine.Open(name, t.TempDir(), &config)
			has := class == "process" || class == "sync" || class == "none" && name == "pebble"
			if (err == nil) != has {
				t.Errorf("%s %s: %v", name, class, err)
			}
			if err == nil {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestABatchTooBigForOneTransactionIsAnErrorAndNotSplit(t *testing.T) {
	p := plan(spec.Write, "random")
	p.Engine, p.Dir = "badger", t.TempDir()
	p.Set.N, p.Phases[0].Ops, p.Phases[0].Batch = 20_000, 20_000, 20_000
	p.Phases[0].Threads = 1
	err := Run(p, engine.Open, func(spec.Event) error { return nil })
	if err == nil {
		t.Fatal("20,000 writes went into one transaction of a memtable of 1 MiB")
	}
	t.Log(err)
}
