package analyzer_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// recorded writes a trace, as a program under libmemtrace.so does, and returns its path.
func recorded() string {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create(filepath.Join(folder, "trace.bin"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if err := textform.Encode(file, strings.NewReader(`trace version=1
info key="process.command" value="python3 train.py"
string id=1 value="encoder"
string id=2 value="decoder"
thread id=1 tid=4711 name="python3"
device index=0 name="GPU" uuid="GPU-0" total=85899345920
alloc seq=1 time=1000 thread=1 level=framework mem=device addr=0x1000000 size=4096 tag=1 allocated=4096 reserved=8192
alloc seq=2 time=2000 thread=1 level=framework mem=device addr=0x2000000 size=1024 tag=2 allocated=5120 reserved=8192
free seq=3 time=3000 thread=1 level=framework mem=device addr=0x1000000 size=4096 allocated=1024 reserved=8192
flush watermark=4
end reason="exit" events=3 time=4000
`)); err != nil {
		log.Fatal(err)
	}
	return file.Name()
}

// A summary is what `memtrace report --json` prints, as values of package report.
func ExampleSummarize() {
	path := recorded()
	defer os.RemoveAll(filepath.Dir(path))
	run, err := analyzer.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	summary, err := analyzer.Summarize(run, analyzer.Options{
		Question: analyzer.Question{Groupings: []string{"tag"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Process.Command)
	fmt.Println("peak", summary.Framework.PeakBytes, "complete", summary.Health.Complete)
	for _, row := range summary.Ledger("tag").Rows {
		fmt.Println(row.Owner, row.Key, row.Bytes)
	}
	// Output:
	// python3 train.py
	// peak 5120 complete true
	// blocks encoder 4096
	// blocks decoder 1024
	// slack slack 3072
}

// lifetimes prints how long each block was live.
type lifetimes struct{}

func (lifetimes) Opened(uint32, *analyzer.Block, *trace.Event) {}

func (lifetimes) Closed(_ uint32, b *analyzer.Block, e *trace.Event) {
	fmt.Printf("%d bytes, live until %d ns\n", b.Size, e.Time)
}

func (lifetimes) Passed(*analyzer.Block) {}

func (lifetimes) Event(*trace.Event) {}

func (lifetimes) Moment() any { return nil }

// A Watcher is told of every block of a trace, in memory that is bounded by what is live at once.
func ExampleFollow() {
	path := recorded()
	defer os.RemoveAll(filepath.Dir(path))
	run, err := analyzer.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	if _, err := analyzer.Follow(run, analyzer.Options{}, lifetimes{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4096 bytes, live until 3000 ns
}
