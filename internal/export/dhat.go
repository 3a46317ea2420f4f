package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// dhatShortLived is the mean lifetime, in microseconds, below which the viewer classifies blocks as short-lived.
const dhatShortLived = 1000

// DHAT writes a file for the viewer of Valgrind's heap profiler, in version 2 of its format: for each call stack the
// bytes, blocks and lifetimes of the whole run, its own highest moment, the memory at the level's peak or at the moment
// that the options name, and the memory left at the end. Times are microseconds. The trace is read twice: for the names
// of stacks, of which several may have equal names, and for their blocks.
func DHAT(w io.Writer, run *Run, o Options) (*Written, error) {
	plain := *run
	plain.Count.RuleSets, plain.Count.HistoryBlocks = nil, 0
	set, err := plain.stacks()
	if err != nil {
		return nil, err
	}
	points := newDHATPoints(set, &o)
	plain.Count.Groupings = []string{"tag"}
	followed, err := plain.followed(plain.Count, func(trace.Source) analyzer.Watcher { return points })
	if err != nil {
		return nil, err
	}
	defer followed.Close()
	points.end(followed)
	if err := points.write(w, set, &o); err != nil {
		return nil, fmt.Errorf("write the file for DHAT: %w", err)
	}
	var peak uint64
	for i := range points.list {
		peak += points.list[i].at.bytes
	}
	return &Written{Summary: followed.Summary, Words: amount(peak, set.Moment, set.TimeNS)}, nil
}

// dhatPoint is the totals of blocks of stacks with equal names.
type dhatPoint struct {
	frames []int32 // numbers of dhatPoints.frames, innermost first

	allocs, allocBytes uint64
	bytes, blocks      heap.Share
	// sum of the times, in nanoseconds, of its frees, less those of its allocations
	lived int64
	most  dhatState // when its own bytes were highest
	at    dhatState // at the moment of the set
}

type dhatState struct{ bytes, blocks uint64 }

// dhatPoints watches the blocks of one level.
type dhatPoints struct {
	watchNothing
	account heap.Account
	frames  []string
	list    []dhatPoint
	byStack map[uint64]int32 // by callstack.Pair.ID
	total   heap.Meter
}

func newDHATPoints(set *analyzer.StackSet, o *Options) *dhatPoints {
	p := &dhatPoints{account: heap.AccountDriver, frames: []string{"[root]"}, byStack: make(map[uint64]int32)}
	if set.Level == heap.AccountFramework.String() {
		p.account = heap.AccountFramework
	}
	shape := shaper(set, o.NoLines)
	numbers, known := make(map[string]int32), make(map[string]int32)
	number := func(text string) int32 {
		n, seen := numbers[text]
		if !seen {
			n = int32(len(p.frames))
			numbers[text] = n
			p.frames = append(p.frames, text)
		}
		return n
	}
	for i := range set.Rows {
		row := &set.Rows[i]
		stack := make([]int32, 0, max(len(row.Frames), 1))
		for k := range row.Frames {
			f := shape(&row.Frames[k])
			stack = append(stack, number(f.text()))
		}
		if len(stack) == 0 {
			stack = append(stack, number(noStack.function))
		}
		key := fmt.Sprint(stack)
		n, seen := known[key]
		if !seen {
			n = int32(len(p.list))
			known[key] = n
			p.list = append(p.list, dhatPoint{frames: stack})
		}
		p.byStack[row.Key] = n
	}
	return p
}

// text is a frame as one text, with its position if known.
func (f *frame) text() string {
	if place := f.place(); place != "" {
		return f.function + " (" + place + ")"
	}
	return f.function
}

func (p *dhatPoints) of(b *heap.Block) *dhatPoint {
	if b.Account != p.account {
		return nil
	}
	n, known := p.byStack[callstack.Pair{Native: b.Stack, Python: b.PyStack}.ID()]
	if !known {
		return nil
	}
	return &p.list[n]
}

// Opened implements analyzer.Watcher.
func (p *dhatPoints) Opened(_ uint32, b *heap.Block, _ *trace.Event) {
	v := p.of(b)
	if v == nil {
		return
	}
	v.allocs++
	v.allocBytes += b.Size
	v.lived -= b.Time
	v.bytes.Grow(b.Size, p.total.Epoch)
	v.blocks.Grow(1, p.total.Epoch)
	if v.bytes.Current > v.most.bytes {
		v.most = dhatState{v.bytes.Current, v.blocks.Current}
	}
	p.total.Grow(b.Size, b.Time)
}

// Closed implements analyzer.Watcher.
func (p *dhatPoints) Closed(_ uint32, b *heap.Block, e *trace.Event) {
	v := p.of(b)
	if v == nil {
		return
	}
	v.lived += max(e.Time, b.Time)
	v.bytes.Shrink(b.Size, p.total.Epoch)
	v.blocks.Shrink(1, p.total.Epoch)
	p.total.Shrink(b.Size)
}

// Passed implements analyzer.Watcher.
func (p *dhatPoints) Passed(b *heap.Block) {
	if v := p.of(b); v != nil {
		v.allocs++
		v.allocBytes += b.Size
	}
}

// Moment implements analyzer.Watcher.
func (p *dhatPoints) Moment() any {
	states := make([]dhatState, len(p.list))
	for i := range p.list {
		states[i] = dhatState{p.list[i].bytes.Current, p.list[i].blocks.Current}
	}
	return states
}

// end fills in what is known after reading the trace. Blocks that are left lived until then.
func (p *dhatPoints) end(f *analyzer.Followed) {
	chosen, _ := f.Moment.([]dhatState)
	for i := range p.list {
		v := &p.list[i]
		v.lived += int64(v.blocks.Current) * f.Summary.Process.DurationNS
		if v.at = (dhatState{v.bytes.Peak(p.total.Epoch), v.blocks.Peak(p.total.Epoch)}); chosen != nil {
			v.at = chosen[i]
		}
	}
	p.list = slices.DeleteFunc(p.list, func(v dhatPoint) bool { return v.allocs == 0 })
	slices.SortFunc(p.list, func(a, b dhatPoint) int { return slices.Compare(a.frames, b.frames) })
}

// dhatHead is the data before the program points. A trace has no accesses to memory.
type dhatHead struct {
	Version   int    `json:"dhatFileVersion"`
	Mode      string `json:"mode"`
	Verb      string `json:"verb"`
	Lifetimes bool   `json:"bklt"`
	Accesses  bool   `json:"bkacc"`
	Unit      string `json:"tu"`
	Million   string `json:"Mtu"`
	Short     int    `json:"tuth"`
	Command   string `json:"cmd"`
	PID       int64  `json:"pid"`
	Peak      int64  `json:"tg"`
	End       int64  `json:"te"`
}

// dhatRecord is a program point.
type dhatRecord struct {
	AllocBytes uint64  `json:"tb"`
	Allocs     uint64  `json:"tbk"`
	Lifetimes  uint64  `json:"tl"`
	MostBytes  uint64  `json:"mb"`
	MostBlocks uint64  `json:"mbk"`
	AtBytes    uint64  `json:"gb"`
	AtBlocks   uint64  `json:"gbk"`
	EndBytes   uint64  `json:"eb"`
	EndBlocks  uint64  `json:"ebk"`
	Frames     []int32 `json:"fs"`
}

func (p *dhatPoints) write(w io.Writer, set *analyzer.StackSet, o *Options) error {
	out := &jsonWriter{out: bufio.NewWriter(w)}
	list := p.list
	if len(list) == 0 { // the viewer requires one
		p.frames = append(p.frames, "[nothing was allocated]")
		list = []dhatPoint{{frames: []int32{int32(len(p.frames) - 1)}}}
	}
	out.object(dhatHead{Version: 2, Mode: levelName(set) + ", " + o.Writer, Verb: "Allocated", Lifetimes: true,
		Unit: "µs", Million: "s", Short: dhatShortLived,
		Command: command(set), PID: set.Process.PID, Peak: set.TimeNS / 1000, End: set.Process.DurationNS / 1000})
	out.text(",\"pps\":[\n")
	for i := range list {
		v := &list[i]
		out.comma(i).value(dhatRecord{v.allocBytes, v.allocs, uint64(max(v.lived, 0)) / 1000, v.most.bytes,
			v.most.blocks, v.at.bytes, v.at.blocks,
			v.bytes.Current, v.blocks.Current, v.frames})
		out.text("\n")
	}
	out.text("],\"ftbl\":[\n")
	for i, text := range p.frames {
		out.comma(i).value(text)
		out.text("\n")
	}
	out.text("]}\n")
	return out.flush()
}

// object writes a structure without its closing brace, so that more can follow.
func (j *jsonWriter) object(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		j.err = err
		return
	}
	j.out.Write(data[:len(data)-1])
}
