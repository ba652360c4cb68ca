package workload

import (
	"bytes"
	"math"
	"os"
	"slices"
	"testing"
)

func TestUnmixInvertsMix(t *testing.T) {
	for j := range uint64(10_000) {
		if x := At(7, j); Unmix(Mix(x)) != x {
			t.Fatalf("%x", x)
		}
	}
}

func TestEveryKeyDecodesToItsIDAndForeignOnesDoNot(t *testing.T) {
	for name := range encodings {
		for _, size := range []int{8, 9, 15, 16, 20, 36, 40, 511} {
			if name == "uuid" && size < 16 {
				continue
			}
			keys, err := NewKeys(name, size, math.MaxUint32, 42)
			if err != nil {
				t.Fatal(err)
			}
			key := make([]byte, size)
			for _, id := range []uint64{0, 1, 2, 255, 65_535, 10_000_000, math.MaxUint32} {
				keys.Encode(id, key)
				if back, ok := keys.Decode(key); !ok || back != id {
					t.Errorf("%s %d: %d comes back as %d, %t", name, size, id, back, ok)
				}
			}
			if _, ok := keys.Decode([]byte("short")); ok {
				t.Errorf("%s: a short key decodes", name)
			}
			foreign := bytes.Repeat([]byte{'z'}, size)
			if id, ok := keys.Decode(foreign); ok && id < 1000 {
				t.Errorf("%s: a foreign key decodes to %d", name, id)
			}
		}
	}
}

func TestShortKeysAreRefusedWhereTheyWouldCollide(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		n    uint64
		ok   bool
	}{
		{"ordered", 8, 1_000_000, true}, {"ordered", 4, 1_000_000, false}, {"hashed", 8, 1000, true}, {"hashed", 7, 1000, false},
		{"uuid", 15, 1000, false},
		{"hashed", 512, 1000, false}, {"nonsense", 16, 1000, false},
	} {
		if _, err := NewKeys(c.name, c.size, c.n, 42); (err == nil) != c.ok {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestAValueIsItselfAndNothingElse(t *testing.T) {
	ProseFile = "../../../assets/prose.txt"
	if _, err := os.Stat(ProseFile); err != nil {
		t.Skipf("SKIPPED: prose is not here: %v", err)
	}
	for name, kind := range valueKinds {
		for _, size := range []int{1, 7, 8, 15, 16, 24, 100, 1000, 200_000} {
			if size > 1000 && kind != Prose {
				continue
			}
			values, err := NewValues(name, size, 42)
			if err != nil {
				t.Fatal(err)
			}
			value := make([]byte, size)
			for id := range uint64(50) {
				values.Fill(id, 3, value)
				if !values.Is(id, 3, value) {
					t.Fatalf("%s %d: not itself", name, size)
				}
				whole := kind != Ramp && size >= 8 && (kind == Half || kind == Incompressible || size >= 16)
				verdict, version := values.Read(id, value)
				if whole && (verdict != Versioned || version != 3) || !whole && verdict != Unversioned {
					t.Fatalf("%s %d: read as %d, version %d", name, size, verdict, version)
				}
				value[size-1] ^= 1
				verdict, version = values.Read(id, value)
				// A value of nothing but a tag always tells a version: one that nobody wrote.
				if verdict != Wrong && !(size <= 16 && verdict == Versioned && version > 1<<40) {
					t.Fatalf("%s %d: damaged, read as %d, version %d", name, size, verdict, version)
				}
				if values.Is(id, 3, value) || values.Is(id, 3, value[1:]) {
					t.Fatalf("%s %d: another value is taken for it", name, size)
				}
				values.Fill(id, 0, value)
				if values.Digest(id) != Digest(value) {
					t.Fatalf("%s %d: the digest is another", name, size)
				}
			}
		}
	}
}

func TestPopularRanksHaveTheirShare(t *testing.T) {
	const n, draws = 1000, 200_000
	z := NewZipf(n)
	var counts [n]int
	for j := range uint64(draws) {
		counts[z.Rank(At(5, j))]++
	}
	zeta := 0.0
	for i := 1; i <= n; i++ {
		zeta += math.Pow(float64(i), -theta)
	}
	for r := range 2 {
		share := float64(counts[r]) / draws
		ideal := math.Pow(float64(r+1), -theta) / zeta
		if math.Abs(share/ideal-1) > 0.05 {
			t.Errorf("rank %d: %g against %g", r, share, ideal)
		}
	}
	for n := uint64(1); n < 6; n++ {
		z := NewZipf(n)
		for j := range uint64(1000) {
			if z.Rank(At(1, j)) >= n {
				t.Fatalf("a rank outside %d", n)
			}
		}
	}
}

func TestLogarithmAndExponentialAreClose(t *testing.T) {
	for j := range uint64(10_000) {
		x := Unit(At(1, j))*1e6 + 1e-6
		if math.Abs(ln(x)-math.Log(x)) > 1e-14*max(math.Abs(math.Log(x)), 1) {
			t.Fatalf("ln %g", x)
		}
		y := Unit(At(2, j))*80 - 40
		if math.Abs(exp(y)/math.Exp(y)-1) > 1e-13 {
			t.Fatalf("exp %g", y)
		}
	}
}

func TestOrdersVisitAsTheySay(t *testing.T) {
	for _, order := range []Order{Up, Down, Shuffled} {
		ops := NewOps(order, 500, 500, 7, 0)
		seen := NewBits(500)
		for j := range uint64(500) {
			seen.Insert(ops.ID(j))
		}
		if seen.Count() != 500 {
			t.Errorf("order %d visits %d of 500", order, seen.Count())
		}
	}
	ops := NewOps(Uniform, 500, 50_000, 7, 0)
	var counts [500]int
	for j := range ops.Count() {
		counts[ops.ID(j)]++
	}
	if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least < 60 || most > 145 {
		t.Errorf("uniform draws are uneven: %d to %d of 100", least, most)
	}
	next := uint64(0)
	ops = NewOps(Up, 1003, 1003, 1, 0)
	for thread := range 8 {
		s := ops.Share(thread, 8)
		if s.Start != next {
			t.Errorf("thread %d starts at %d, not %d", thread, s.Start, next)
		}
		next = s.End
	}
	if next != 1003 {
		t.Errorf("shares end at %d", next)
	}
}

func TestRangesEndWhereSortedKeysSay(t *testing.T) {
	for name := range encodings {
		keys, err := NewKeys(name, 16, 300, 5)
		if err != nil {
			t.Fatal(err)
		}
		sorted := make([][]byte, 300)
		for id := range sorted {
			sorted[id] = make([]byte, 16)
			keys.Encode(uint64(id), sorted[id])
		}
		slices.SortFunc(sorted, bytes.Compare)
		ops := NewOps(Uniform, 300, 200, 5, 0)
		expect := NewExpect(300)
		for id := range uint64(300) {
			expect.Insert(id)
		}
		// Some keys are not there.
		if name != "ordered" {
			sorted = slices.DeleteFunc(sorted, func(key []byte) bool {
				id, _ := keys.Decode(key)
				if id%7 == 3 {
					expect.Delete(id)
				}
				return id%7 == 3
			})
		}
		n := len(sorted)
		for _, backward := range []bool{false, true} {
			ranges := NewRanges(ops, NewSorted(&keys, expect), 10, backward)
			for j := range ops.Count() {
				key := make([]byte, 16)
				keys.Encode(ops.ID(j), key)
				at, there := slices.BinarySearchFunc(sorted, key, bytes.Compare)
				from, to := at, min(at+10, n)
				if backward {
					to = at
					if there {
						to++
					}
					from = max(to-10, 0)
				}
				end := to - 1
				if backward {
					end = from
				}
				if int(ranges.Count(j)) != to-from {
					t.Fatalf("%s, backward %t, operation %d sees %d, not %d", name, backward, j, ranges.Count(j), to-from)
				}
				if last, _ := keys.Decode(sorted[max(end, 0)]); to > from && ranges.Last(j) != last {
					t.Fatalf("%s, backward %t, operation %d ends at %d, not %d", name, backward, j, ranges.Last(j), last)
				}
			}
		}
	}
}

func TestTheLastWriteOfSomeThreadIsExpectedAndNoOther(t *testing.T) {
	values, err := NewValues("half", 20, 3)
	if err != nil {
		t.Fatal(err)
	}
	value := func(id, version uint64) []byte {
		v := make([]byte, 20)
		values.Fill(id, version, v)
		return v
	}
	// The second thread was stopped early.
	for _, counts := range [][]uint64{{200, 200}, {200, 37}} {
		ops := NewOps(Uniform, 50, 400, 3, 5)
		did := ops.Did(counts)
		expect := NewExpect(50)
		expect.BeginEpoch()
		expect.Overwrite(NewVersions(5, 400), did, func(j uint64) (uint64, bool) { return ops.ID(j), true })
		for j := range uint64(400) {
			id, s := ops.ID(j), did[j/200]
			last := s.Start <= j && j < s.End
			for k := j + 1; k < s.End; k++ {
				last = last && ops.ID(k) != id
			}
			if expect.Check(values, id, value(id, 5<<40+j+1)) != last {
				t.Errorf("operation %d: expected %t", j, last)
			}
			if expect.Has(id) && expect.Check(values, id, value(id, 0)) {
				t.Errorf("operation %d: the first value is expected", j)
			}
		}
	}
}

func TestALaterPhaseMakesEarlierValuesOld(t *testing.T) {
	values, err := NewValues("half", 20, 3)
	if err != nil {
		t.Fatal(err)
	}
	same := func(j uint64) (uint64, bool) { return j, true }
	expect := NewExpect(50)
	for id := range uint64(50) {
		expect.Insert(id)
	}
	// Phase 1 writes the ids below 30, phase 2 those from 20 to 39 at once with its background, which has 25 to 49.
	expect.BeginEpoch()
	expect.Overwrite(NewVersions(1, 30), []Stretch{{0, 30}}, same)
	expect.BeginEpoch()
	expect.Overwrite(NewVersions(2, 40), []Stretch{{20, 40}}, same)
	expect.Overwrite(NewVersions(99, 50), []Stretch{{25, 50}}, same)
	value := func(id, phase uint64) []byte {
		v := make([]byte, 20)
		version := uint64(0)
		if phase > 0 {
			version = phase<<40 + id + 1
		}
		values.Fill(id, version, v)
		return v
	}
	right := func(id uint64) (all [4]bool) {
		for i, phase := range []uint64{0, 1, 2, 99} {
			all[i] = expect.Check(values, id, value(id, phase))
		}
		return all
	}
	for id, want := range map[uint64][4]bool{
		10: {false, true, false, false}, 22: {false, false, true, false}, 27: {false, false, true, true},
		45: {false, false, false, true},
	} {
		if right(id) != want {
			t.Errorf("%d: %v", id, right(id))
		}
	}
	racing := Racing{expect, NewVersions(7, 50)}
	for _, c := range []struct {
		phase         uint64
		written, want bool
	}{{7, false, true}, {7, true, true}, {2, false, true}, {2, true, false}, {1, false, false}} {
		if racing.Plausible(values, 22, value(22, c.phase), c.written) != c.want {
			t.Errorf("%v", c)
		}
	}
	expect.Delete(27)
	if right(27) != [4]bool{} {
		t.Error("a deleted key has a value")
	}
	expect.Insert(27)
	if right(27) != [4]bool{true} {
		t.Error("a key written anew has an old value")
	}
}
