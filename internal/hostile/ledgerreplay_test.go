package hostile

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A second replay of a trace, from the text of `memtrace dump` and by the documentation alone: nothing of the analyzer
// is used. It repairs nothing, and reports what it cannot explain.

// textEvent is one line of the dump.
type textEvent struct {
	seq  uint64
	kind string
	word map[string]string
}

func (e textEvent) number(name string) int64 {
	n, _ := strconv.ParseInt(e.word[name], 0, 64)
	return n
}

func (e textEvent) has(flag int64) bool { return e.number("flags")&flag != 0 }

const (
	textReference = 8
	textNoticed   = 16
)

var textWord = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)

// dumpEvents returns the events in the order of their numbers, and the threads' ids by their numbers.
func dumpEvents(t *testing.T, path string) (events []textEvent, threads map[string]uint64) {
	t.Helper()
	text, err := exec.Command(command(t), "dump", path).Output()
	if err != nil {
		t.Fatalf("dump %s: %v", path, err)
	}
	threads = map[string]uint64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		e := textEvent{kind: kind, word: map[string]string{}}
		for _, m := range textWord.FindAllStringSubmatch(rest, -1) {
			e.word[m[1]] = m[2]
		}
		if kind == "thread" {
			threads[e.word["id"]] = uint64(e.number("tid"))
		}
		if seq, numbered := e.word["seq"]; numbered {
			e.seq, _ = strconv.ParseUint(seq, 10, 64)
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b textEvent) int { return cmp.Compare(a.seq, b.seq) })
	return events, threads
}

// textBlock is what lives: memory by address, or by handle.
type textBlock struct {
	place      ledgerPlace
	size       int64
	owner      string // handle of what it ends with, "" nothing
	references int
	mappings   int
	unsized    bool // imported and not yet mapped: its size is unknown
}

// textReplay is the state of the replay and its result.
type textReplay struct {
	blocks   map[string]*textBlock // by space and address
	mapped   map[string]textMapping
	nodes    map[string]bool // addresses that a graph's node ever had
	contexts map[string]textContext
	threads  map[string]uint64

	live, peak       map[ledgerPlace]int64
	allLive, allPeak map[string]int64
	by               map[uint64]statement // what each thread did
	problems         []string
	events           int
}

type textMapping struct {
	start, size int64
	block       *textBlock
	key         string // of the block
}

type textContext struct {
	device  int64
	primary bool
	live    bool
}

func replayText(t *testing.T, path string) *textReplay {
	t.Helper()
	events, threads := dumpEvents(t, path)
	r := &textReplay{blocks: map[string]*textBlock{}, mapped: map[string]textMapping{}, nodes: map[string]bool{},
		contexts: map[string]textContext{}, threads: threads,
		live: map[ledgerPlace]int64{}, peak: map[ledgerPlace]int64{}, allLive: map[string]int64{},
		allPeak: map[string]int64{}, by: map[uint64]statement{}, events: len(events)}
	for _, e := range events {
		r.apply(e)
	}
	return r
}

// unsized returns the imported handles whose size never came to light.
func (r *textReplay) unsized() map[uint64]bool {
	handles := map[uint64]bool{}
	for key, b := range r.blocks {
		if b.unsized {
			handle, _ := strconv.ParseUint(strings.TrimPrefix(key, "handle"), 0, 64)
			handles[handle] = true
		}
	}
	return handles
}

func (r *textReplay) problem(e textEvent, format string, words ...any) {
	r.problems = append(r.problems, fmt.Sprintf("event %d, %s by %s: ", e.seq, e.kind, e.word["api"])+
		fmt.Sprintf(format, words...))
}

func (r *textReplay) apply(e textEvent) {
	switch e.kind {
	case "alloc":
		r.alloc(e)
	case "free":
		r.free(e)
	case "map":
		r.mapAt(e)
	case "unmap":
		r.unmap(e)
	case "create":
		if e.word["object"] == "context" && e.number("status") == 0 {
			r.contexts[e.word["addr"]] = textContext{e.number("device"),
				!strings.HasPrefix(e.word["api"], "cuCtxCreate") || e.has(textNoticed), true}
		}
	case "destroy":
		r.destroy(e)
	}
}

// textKinds maps each kind of memory to its account and its address space; "device" is also where frees search for it.
var textKinds = map[string]struct{ account, space string }{
	"device": {"driver", "device"}, "async": {"driver", "device"}, "array": {"driver", "device"},
	"module": {"driver", "device"}, "managed": {"managed", "device"},
	"foreign": {"foreign", "device"}, "vmm": {"driver", "handle"}, "imported": {"foreign", "handle"},
	"multicast": {"multicast", "handle"}, "host": {"host", "host"},
	"registered": {"registered", "host"}, "address": {"address", "address"}, "graph": {"graph", "graph"},
}

// textOwned are the kinds that end with a context, a graph or a module.
var textOwned = map[string]bool{"device": true, "managed": true, "host": true, "registered": true, "array": true,
	"foreign": true, "module": true, "graph": true}

func (r *textReplay) page(e textEvent) statement {
	thread := r.threads[e.word["thread"]]
	s, known := r.by[thread]
	if !known {
		s = newStatement()
		r.by[thread] = s
	}
	return s
}

func (r *textReplay) count(e textEvent, at ledgerPlace, f figures) {
	s := r.page(e)
	s.add(at, f, 1)
	change := f.MadeBytes - f.EndedBytes
	r.live[at] += change
	r.allLive[at.account] += change
	r.peak[at] = max(r.peak[at], r.live[at])
	r.allPeak[at.account] = max(r.allPeak[at.account], r.allLive[at.account])
}

func (r *textReplay) open(e textEvent, b *textBlock) {
	r.count(e, b.place, figures{Made: 1, MadeBytes: b.size})
}
func (r *textReplay) close(e textEvent, key string, b *textBlock) {
	if r.blocks[key] == b {
		delete(r.blocks, key)
	}
	if !b.unsized {
		r.count(e, b.place, figures{Ended: 1, EndedBytes: b.size})
	}
}

func (r *textReplay) alloc(e textEvent) {
	mem, addr := e.word["mem"], e.word["addr"]
	if mem == "" {
		mem = "device"
	}
	kind, known := textKinds[mem]
	if !known || e.word["level"] != "driver" {
		r.problem(e, "memory of kind %q at level %q", mem, e.word["level"])
		return
	}
	key := kind.space + addr
	old := r.blocks[key]
	at := ledgerPlaceOf(kind.account, int(e.number("device")))
	if mem == "vmm" && e.number("device") < 0 {
		at = ledgerPlaceOf("host", -1)
	}
	switch {
	case e.has(textReference) && e.number("status") != 0:
	case e.number("status") != 0:
		s := r.page(e)
		s.add(at, figures{Refused: 1}, 1)
	case e.has(textReference) && old == nil:
		r.problem(e, "one more reference to %s, which is unknown", addr)
	case e.has(textReference):
		old.references++
	case old != nil && mem == "foreign" && old.place.account == "foreign" && old.size == e.number("size"):
		old.references++
	case old != nil && mem == "module":
	case old != nil:
		r.problem(e, "%s at %s is live", mem, addr)
	default:
		b := &textBlock{place: at, size: e.number("size"), references: 1, unsized: mem == "imported"}
		if textOwned[mem] {
			b.owner = e.word["handle"]
		}
		if mem == "graph" {
			r.nodes[addr] = true
		}
		r.blocks[key] = b
		if !b.unsized {
			r.open(e, b)
		}
	}
}

func (r *textReplay) free(e textEvent) {
	mem, addr := e.word["mem"], e.word["addr"]
	if mem == "" {
		mem = "device"
	}
	space := textKinds[mem].space
	if e.number("status") != 0 {
		s := r.page(e)
		s.failedFrees++
		r.by[r.threads[e.word["thread"]]] = s
		return
	}
	key := space + addr
	b := r.blocks[key]
	if b == nil && space == "device" && r.blocks["graph"+addr] != nil {
		key = "graph" + addr
		b = r.blocks[key]
	}
	switch {
	case b == nil && r.nodes[addr]: // of an earlier launch
	case b == nil:
		r.problem(e, "%s is not live", addr)
	default:
		b.references--
		if b.references == 0 && b.mappings == 0 {
			r.close(e, key, b)
		}
	}
}

func (r *textReplay) mapAt(e textEvent) {
	handle, addr := e.word["handle"], e.word["addr"]
	if e.number("status") != 0 {
		return
	}
	if _, taken := r.mapped[addr]; taken {
		r.problem(e, "%s is mapped", addr)
	}
	key := "handle" + handle
	b := r.blocks[key]
	if b == nil {
		r.problem(e, "handle %s is unknown", handle)
		return
	}
	b.mappings++
	if b.unsized && e.number("size") != 0 {
		b.unsized, b.size = false, e.number("size")
		r.open(e, b)
	}
	start, _ := strconv.ParseUint(addr, 0, 64)
	r.mapped[addr] = textMapping{int64(start), e.number("size"), b, key}
}

// unmap undoes every mapping in its range; a tile and a binding have a key in place of the address.
func (r *textReplay) unmap(e textEvent) {
	if e.number("status") != 0 {
		return
	}
	from, _ := strconv.ParseUint(e.word["addr"], 0, 64)
	isKey := from>>63 != 0
	found := false
	for addr, m := range r.mapped {
		start := uint64(m.start)
		if start != from && (isKey || start < from || start >= from+uint64(e.number("size"))) {
			continue
		}
		found = true
		delete(r.mapped, addr)
		m.block.mappings--
		if m.block.references == 0 && m.block.mappings == 0 {
			r.close(e, m.key, m.block)
		}
	}
	if !found {
		r.problem(e, "nothing is mapped at %s", e.word["addr"])
	}
}

// destroy ends what belongs to a context, a graph or a module. Without a handle it is the primary context of a device.
// Variables of modules also end with the last context of their device.
func (r *textReplay) destroy(e textEvent) {
	if e.number("status") != 0 || e.has(textReference) {
		return
	}
	addr, device := e.word["addr"], e.number("device")
	switch e.word["object"] {
	case "graph", "module", "library":
		r.endOwned(e, addr)
		return
	case "context":
	default:
		return
	}
	for handle, c := range r.contexts {
		if c.live && (handle == addr || addr == "" && c.primary && c.device == device) {
			device, c.live = c.device, false
			r.contexts[handle] = c
			r.endOwned(e, handle)
		}
	}
	for _, c := range r.contexts {
		if c.live && c.device == device {
			return
		}
	}
	for key, b := range r.blocks {
		_, context := r.contexts[b.owner]
		if b.owner != "" && !context && b.place == (ledgerPlace{"driver", int(device)}) {
			r.close(e, key, b)
		}
	}
}

func (r *textReplay) endOwned(e textEvent, owner string) {
	for key, b := range r.blocks {
		if b.owner == owner {
			r.close(e, key, b)
		}
	}
}
