package workload

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// vectorsFile is the lab's, in a checkout. The copy of these sources that the lab builds from has none.
const vectorsFile = "../../../../../docs/lab/vectors.tsv"

func TestGeneratorsMakeThePublishedVectors(t *testing.T) {
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
	if checked <= 90 {
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
