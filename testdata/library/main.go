// Prints the largest owners of a trace by tag, and the blocks that are live at its end: what docs/library.md shows.
package main

import (
	"fmt"
	"log"
	"os"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// live counts the blocks that were not freed.
type live map[uint32]uint64

func (l live) Opened(id uint32, b *analyzer.Block, _ *trace.Event) { l[id] = b.Size }

func (l live) Closed(id uint32, _ *analyzer.Block, _ *trace.Event) { delete(l, id) }

func (l live) Passed(*analyzer.Block) {}

func (l live) Event(*trace.Event) {}

func (l live) Moment() any { return nil }

// peak prints who held the memory of a trace at its peak.
func peak(path string) (*report.Summary, error) {
	run, err := analyzer.Open(path)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return analyzer.Summarize(run, analyzer.Options{Question: analyzer.Question{Groupings: []string{"tag"}}})
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: library TRACE")
	}
	summary, err := peak(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range summary.Ledger("tag").Rows {
		fmt.Println(row.Owner, row.Key, row.Bytes)
	}
	run, err := analyzer.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	left := live{}
	if _, err := analyzer.Follow(run, analyzer.Options{}, left); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(left), "blocks are live at the end")
}
