package workload

import (
	"fmt"
	"strings"
)

// The early words are drawn more often.
var words = strings.Fields(`
the of and to in is that for it was on are as with they be at one have this from or had by word but not what
all were when your said there use each which their time will about many then them write would like these long
make thing see him two has look more day could come number sound most people`)

// word is the word number j of a stream: the smaller of two even draws chooses.
func word(seed, j uint64) string {
	draw := At(seed, j)
	return words[min(draw%64, draw/64%64)]
}

// textPool has size bytes of words parted by spaces.
func textPool(size int, seed uint64) []byte {
	out := make([]byte, 0, size+16)
	for j := uint64(0); len(out) < size; j++ {
		out = append(out, word(seed, j)...)
		out = append(out, ' ')
	}
	return out[:size]
}

// jsonPool has size bytes of records, one a line.
func jsonPool(size int, seed uint64) []byte {
	out := make([]byte, 0, size+256)
	for j := uint64(0); len(out) < size; j += 9 {
		draw := func(k uint64) uint64 { return At(seed, j+k) }
		out = fmt.Appendf(out,
			`{"id":%d,"name":"%s %s","active":%t,"score":%d.%02d,"tags":["%s","%s"],"at":"2024-%02d-%02d"}`+"\n",
			draw(0)>>40, word(seed, j+1), word(seed, j+2), draw(3)&1 == 1, draw(4)%100, (draw(4)>>32)%100,
			word(seed, j+5), word(seed, j+6), draw(7)%12+1, draw(8)%28+1)
	}
	return out[:size]
}
