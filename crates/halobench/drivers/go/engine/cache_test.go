package engine

import (
	"strconv"
	"testing"
	"time"
)

func TestPebblesCacheHoldsWhatItIsGiven(t *testing.T) {
	// As large as a memtable, which is charged to it.
	c := config("process")
	c.WriteBuffer, c.Cache = 8<<20, 8<<20
	e, err := Open("pebble", t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	session, err := e.Session()
	if err != nil {
		t.Fatal(err)
	}
	// Enough for memtables, which begin small, to reach their full size.
	const n = 200_000
	for i := range uint64(n) {
		if err := session.BatchPut(key(0, i), value(i)); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			if err := session.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := e.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		for i := range uint64(n / 40) {
			if _, found, err := session.Get(key(0, i)); err != nil || !found {
				t.Fatal(found, err)
			}
		}
	}
	stats := e.Stats()
	hits, _ := strconv.Atoi(stats["block_cache_hits"])
	misses, _ := strconv.Atoi(stats["block_cache_miss"])
	if hits < 10*misses {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
