package child

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// keptExamples is how many examples are kept of wrong answers.
const keptExamples = 5

// wrong has the wrong answers seen: how many, and the first few in words.
type wrong struct {
	count    uint64
	examples []string
}

func (w *wrong) note(format string, args ...any) {
	w.count++
	if len(w.examples) < keptExamples {
		w.examples = append(w.examples, fmt.Sprintf(format, args...))
	}
}

func (w *wrong) merge(other wrong) {
	w.count += other.count
	room := keptExamples - min(len(w.examples), keptExamples)
	w.examples = append(w.examples, other.examples[:min(room, len(other.examples))]...)
}

// words never is null in JSON.
func (w *wrong) words() []string {
	return append([]string{}, w.examples...)
}

// generator makes a data set's keys and values.
type generator struct {
	set    spec.DataSet
	keys   workload.Keys
	values *workload.Values
}

func newGenerator(set spec.DataSet) (*generator, error) {
	if set.N == 0 || set.N > 1<<32-1 {
		return nil, fmt.Errorf("%d keys: between 1 and %d are possible", set.N, uint32(1<<32-1))
	}
	keys, err := workload.NewKeys(set.Encoding, set.KeyLen, set.N, set.Seed)
	if err != nil {
		return nil, err
	}
	values, err := workload.NewValues(set.ValueKind, set.ValueLen, set.Seed)
	if err != nil {
		return nil, err
	}
	return &generator{set, keys, values}, nil
}

// state reads everything and compares it with what is expected: keys, their order and number, and every value. It
// returns the wrong ones and a digest of all there is.
func state(e engine.Engine, g *generator, expect *workload.Expect) (bad wrong, digest string, err error) {
	session, err := e.Session()
	if err != nil {
		return bad, "", err
	}
	cursor, err := session.Cursor(false)
	if err != nil {
		return bad, "", err
	}
	var (
		hash     = xxh3.New()
		seen     = workload.NewBits(g.set.N)
		previous []byte
		count    uint64
	)
	more, err := cursor.First()
	for ; more && err == nil; more, err = cursor.Next() {
		key := cursor.Key()
		if count > 0 && bytes.Compare(key, previous) <= 0 {
			bad.note("a scan returned %s behind %s", show(key), show(previous))
		}
		previous = append(previous[:0], key...)
		value, err := cursor.Value()
		if err != nil {
			return bad, "", err
		}
		_, _ = hash.Write(previous)
		_, _ = hash.Write(value)
		id, ok := g.keys.Decode(previous)
		switch {
		case !ok || id >= g.set.N:
			bad.note("%s was never written", show(previous))
		case !seen.Insert(id):
			bad.note("%s is there twice", show(previous))
		case !expect.Check(g.values, id, value):
			what := "should have been deleted"
			if expect.Has(id) {
				what = "has a wrong or old value"
			}
			bad.note("%s %s", show(previous), what)
		}
		count++
	}
	if err != nil {
		return bad, "", err
	}
	if want := expect.Count(); count != want {
		bad.note("a scan found %d keys where %d are expected", count, want)
	}
	if err := cursor.Close(); err != nil {
		return bad, "", err
	}
	return bad, fmt.Sprintf("%016x", hash.Sum64()), session.Close()
}

// show is a key for people.
func show(key []byte) string {
	for _, b := range key {
		if b <= ' ' || b > '~' {
			return hex.EncodeToString(key)
		}
	}
	return string(key)
}
