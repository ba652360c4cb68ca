package workload

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// vectorsFile is the lab's, in a checkout. The copy of these sources that the lab builds from has none.
const vectorsFile = "../../../../../docs/lab/vectors.tsv"

func TestGeneratorsMakeThePublishedVectors(t *testing.T) {
	ProseFile = "../../../assets/prose.txt"
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Skipf("SKIPPED: the vectors are not here: %v", err)
	}
	checked := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		expected := fields[len(fields)-1]
		if got := computed(t, fields); got != expected {
			t.Errorf("%q: made %s", line, got)
		}
		checked++
	}
	if checked <= 140 {
		t.Errorf("only %d vectors", checked)
	}
}

func computed(t *testing.T, f []string) string {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", f, err)
		}
		return n
	}
	switch f[0] {
	case "draw":
		return fmt.Sprintf("%016x", At(number(1), number(2)))
	case "stream":
		return fmt.Sprintf("%016x", Stream(number(1), number(2)))
	case "key":
		keys, err := NewKeys(f[1], int(number(2)), 1_000_000, number(3))
		if err != nil {
			t.Fatal(err)
		}
		key := make([]byte, keys.Size())
		keys.Encode(number(4), key)
		if id, ok := keys.Decode(key); !ok || id != number(4) {
			t.Errorf("%q: decodes to %d, %t", f, id, ok)
		}
		return hex.EncodeToString(key)
	case "value":
		values, err := NewValues(f[1], int(number(2)), number(3))
		if err != nil {
			t.Fatal(err)
		}
		value := make([]byte, values.Size())
		values.Fill(number(4), number(5), value)
		return hex.EncodeToString(value)
	case "part":
		values, err := NewValues(f[1], int(number(2)), number(3))
		if err != nil {
			t.Fatal(err)
		}
		value := make([]byte, values.Size())
		values.Fill(number(4), number(5), value)
		if !values.Is(number(4), number(5), value) {
			t.Errorf("%q: is not itself", f)
		}
		at := number(6)
		return hex.EncodeToString(value[at : at+24])
	case "mix":
		order, err := ParseOrder(f[1])
		if err != nil {
			t.Fatal(err)
		}
		var shares [5]uint32
		for i, share := range strings.Split(f[5], "/") {
			n, err := strconv.ParseUint(share, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			shares[i] = uint32(n)
		}
		ops := NewOps(order, number(2), number(9), number(3), number(4))
		share := ops.Share(int(number(11)), int(number(10)))
		mixed := NewMixed(ops, shares, f[6] == "1", uint32(number(7)), number(8))
		next, own := number(8)+mixed.Inserts(Stretch{0, share.Start}), uint64(0)
		var words []string
		for j := share.Start; j < share.End; j++ {
			switch mixed.Turn(j) {
			case TurnInsert:
				words = append(words, fmt.Sprintf("i%d", next))
				next, own = next+1, own+1
			case TurnRead:
				words = append(words, fmt.Sprintf("r%d", mixed.ReadID(j, own, next)))
			case TurnUpdate:
				words = append(words, fmt.Sprintf("u%d", mixed.ID(j)))
			case TurnModify:
				words = append(words, fmt.Sprintf("m%d", mixed.ID(j)))
			case TurnScan:
				words = append(words, fmt.Sprintf("s%d:%d", mixed.ID(j), mixed.ScanLen(j)))
			}
		}
		return strings.Join(words, " ")
	case "gap":
		arrivals := NewArrivals(number(1), number(2), 1, 1)
		return fmt.Sprintf("%016x", math.Float64bits(arrivals.Gap(number(3), 1)))
	case "digest":
		value, err := hex.DecodeString(strings.TrimPrefix(f[1], "-"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%016x", Digest(value))
	case "ids":
		order, err := ParseOrder(f[1])
		if err != nil {
			t.Fatal(err)
		}
		ops := NewOps(order, number(2), 12, number(3), number(4))
		ids := make([]string, 12)
		for j := range ids {
			ids[j] = strconv.FormatUint(ops.ID(uint64(j)), 10)
		}
		return strings.Join(ids, " ")
	case "coins":
		ops := NewOps(Up, 32, 32, number(1), number(2))
		coins := make([]byte, 32)
		for j := range coins {
			coins[j] = '0'
			if ops.Writes(uint64(j)) {
				coins[j] = '1'
			}
		}
		return string(coins)
	default:
		t.Fatalf("a vector of the unknown kind %s", f[0])
		return ""
	}
}
