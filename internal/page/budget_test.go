package page

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer/report"
)

var measured = flag.String("measure", "",
	"write pages of so many `BLOCKS`, separated by commas, into -to, and print their sizes")
var pageFolder = flag.String("to", "", "folder of those pages")

// loop is the history of a program with the given number of blocks: each pass of 1,200 blocks is like the one before,
// with other times, a few other sizes, and some blocks that stay.
func loop(blocks int) *report.Summary {
	const pass, owners, sizes = 1200, 1500, 300
	random := rand.New(rand.NewPCG(1, 2))
	h := &report.History{Level: "framework", By: []string{"category", "module", "site"}}
	for i := range owners {
		h.Owners = append(h.Owners,
			report.HistoryOwner{Keys: []string{fmt.Sprint("category ", i%8), fmt.Sprint("net.layers.", i%96),
				fmt.Sprintf("train.py:%d", i)},
				Frames: []report.StackFrame{{Function: fmt.Sprint("f", i), File: "train.py", Line: i, User: true},
					{Function: "main", File: "train.py", Line: 1, User: true}}})
	}
	ends := map[int][]int{}
	event, now, begun := 0, int64(0), 0
	tick := func() {
		now += int64(1000 + random.IntN(30_000))
		h.Times = append(h.Times, now)
		event++
	}
	for begun < blocks {
		if list := ends[event]; len(list) > 0 {
			h.Blocks[list[0]].Died = uint32(event)
			if ends[event+1] = append(ends[event+1], list[1:]...); len(ends[event+1]) == 0 {
				delete(ends, event+1)
			}
			delete(ends, event)
			tick()
			continue
		}
		place := begun % pass
		life := []int{1, 2, 5, 40, 700, 900, 1500, 60}[place%8] + random.IntN(6)
		if random.IntN(20000) == 0 {
			life = 1 << 40
		}
		h.Blocks = append(h.Blocks, report.HistoryBlock{Born: uint32(event), Died: ^uint32(0),
			Size:  uint64(512 * (1 + (place*7919)%sizes + random.IntN(50)/49)),
			Owner: uint32((place*31 + random.IntN(20)/19) % owners)})
		ends[event+life] = append(ends[event+life], begun)
		begun++
		tick()
	}
	for i := range h.Blocks {
		h.Blocks[i].Died = min(h.Blocks[i].Died, uint32(event))
	}
	s := &report.Summary{History: h, By: []string{"site"}}
	s.Process.DurationNS = now
	s.Framework.AllocCount, s.Framework.PeakBytes = uint64(blocks), 1
	s.Heights = []report.Heights{{Level: "framework", WidthNS: now/100 + 1, PeakBytes: make([]uint64, 100)}}
	return s
}

// A block takes less than 6 bytes of a page with many, so that five million fit into 30 MB.
func TestPageOfManyBlocksIsSmall(t *testing.T) {
	const blocks = manyBlocks + 100_000
	var b bytes.Buffer
	if err := Write(&b, loop(blocks), Options{Path: "x.bin"}); err != nil {
		t.Fatal(err)
	}
	if per := float64(b.Len()) / blocks; per > 6 {
		t.Errorf("%.2f bytes a block", per)
	}
}

// Figures for docs/measurements.md: see scripts/page-bench.sh.
func TestMeasure(t *testing.T) {
	if *measured == "" {
		t.Skip("prints figures with -measure")
	}
	for _, text := range strings.Split(*measured, ",") {
		blocks, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		s, begin := loop(blocks), time.Now()
		file, err := os.Create(filepath.Join(*pageFolder, text+".html"))
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(file, s, Options{Path: "x.bin"}); err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%d blocks: %.1f MB of page, %.2f bytes a block, written in %.1f s\n", blocks, float64(info.Size())/
			1e6, float64(info.Size())/float64(blocks), time.Since(begin).Seconds())
	}
}
