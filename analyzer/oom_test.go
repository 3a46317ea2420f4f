package analyzer

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/internal/oom"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// oomHead is a device of 1000 MiB, PyTorch's allocator and a program that calls the driver itself.
const oomHead = `trace version=1
info key="framework.torch" value="2.7.1"
device index=0 name="GPU" uuid="GPU-1" total=1048576000
module id=1 start=0x1000 end=0x2000 base=0x1000 path="/lib/libc10_cuda.so"
module id=2 start=0x3000 end=0x4000 base=0x3000 path="/bin/own"
stack id=1 frames=0x1100
stack id=2 frames=0x3100
string id=3 value="model"
string id=4 value="model.head"
string id=5 value="oom"
thread id=1 tid=11 name="main"
thread id=2 tid=12 name="worker"
`

// oomLines writes events, one a line: "ms thread what". Order numbers and the common fields are filled in.
//
//	take ADDR MIB, give ADDR        the framework's driver memory
//	refuse MIB, other MIB           the driver refuses the framework; the program itself
//	own ADDR MIB                    driver memory of the program itself
//	block ADDR MIB TAG, unblock ADDR MIB   the framework's blocks
//	oom MIB, step N, sample USED OWN OTHERS KEPT (MiB)
func oomLines(t *testing.T, lines string) *trace.Reader {
	t.Helper()
	text := strings.Builder{}
	text.WriteString(oomHead)
	var allocated, reserved int
	taken := map[string]int{}
	seq := 0
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		seq++
		var ms, thread, size, tag, own, others, kept int
		var what, addr string
		scan := func(args ...any) {
			if n, err := fmt.Sscan(line, append([]any{&ms, &thread, &what}, args...)...); err != nil {
				t.Fatalf("%q: %d read, %v", line, n, err)
			}
		}
		scan()
		begin := func(kind string) { fmt.Fprintf(&text, "%s seq=%d time=%d thread=%d ", kind, seq, ms*1000000, thread) }
		const driver = "level=driver api=cuMemAlloc_v2 runtime=cudaMalloc mem=device "
		switch what {
		case "take", "own":
			scan(&addr, &size)
			begin("alloc")
			stack := 1
			if what == "own" {
				stack = 2
			} else {
				reserved += size
				taken[addr] = size
			}
			fmt.Fprintf(&text, driver+"addr=%s size=%d stack=%d\n", addr, size<<20, stack)
		case "give":
			scan(&addr)
			begin("free")
			reserved -= taken[addr]
			fmt.Fprintf(&text, "level=driver api=cuMemFree_v2 mem=device addr=%s\n", addr)
		case "refuse", "other", "invalid":
			scan(&size)
			begin("alloc")
			stack, status := 1, 2
			if what == "other" {
				stack = 2
			}
			if what == "invalid" {
				status = 1
			}
			fmt.Fprintf(&text, driver+"size=%d stack=%d status=%d tag=4\n", size<<20, stack, status)
		case "block", "unblock":
			kind, sign := "alloc", 1
			if what == "block" {
				scan(&addr, &size, &tag)
			} else {
				scan(&addr, &size)
				kind, sign = "free", -1
			}
			allocated += sign * size
			begin(kind)
			fmt.Fprintf(&text,
				"level=framework api=reportMemoryUsageToProfiler mem=device addr=%s size=%d stack=1 tag=%d allocated=%d reserved=%d\n", addr, size<<20, tag,
				allocated<<20, reserved<<20)
		case "oom":
			scan(&size)
			begin("oom")
			fmt.Fprintf(&text,
				"level=framework api=reportOutOfMemoryToProfiler size=%d stack=1 tag=4 allocated=%d reserved=%d\n",
				size<<20, allocated<<20, reserved<<20)
		case "step":
			scan(&size)
			begin("step")
			fmt.Fprintf(&text, "count=%d\n", size)
		case "sample":
			scan(&size, &own, &others, &kept)
			begin("sample")
			fmt.Fprintf(&text, "size=%d allocated=%d count=%d reserved=%d name=5\n", size<<20, own<<20, others<<20,
				kept<<20)
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(&file, -1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// oomOf returns what both ways of telling say, after comparing them: the report's, and the one of a process that
// watches itself.
func oomOf(t *testing.T, lines string) report.OOM {
	t.Helper()
	s, err := Summarize(oomLines(t, lines), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := oomLines(t, lines)
	w := oom.NewWatch(r.Tables(), trace.Info{"framework.torch": "2.7.1"}, 1<<40)
	for {
		events, err := r.ReadBatch()
		if err != nil {
			break
		}
		w.Apply(events)
	}
	w.Finish()
	live := []report.OOMEvent{}
	for _, report := range w.Take() {
		live = append(live, report.Event)
	}
	if !reflect.DeepEqual(live[:min(len(live), oom.MaxEvents)], s.OOM.Events) {
		t.Fatalf("the watch tells\n%+v\nthe report\n%+v", live, s.OOM.Events)
	}
	if failed, recovered := w.Counts(); failed != s.OOM.Count || recovered != s.OOM.RecoveredCount {
		t.Fatalf("the watch counts %d and %d, the report %d and %d", failed, recovered, s.OOM.Count,
			s.OOM.RecoveredCount)
	}
	return s.OOM
}

// TestOOMAttemptsAreOneStory: what belongs together is one event, and its outcome is right.
func TestOOMAttemptsAreOneStory(t *testing.T) {
	const held = "0 1 take 0x10000000 300\n0 1 take 0x40000000 100\n0 1 block 0x10000000 200 3\n"
	tests := []struct {
		name, lines string
		want        []string // outcome level attempts requested released
	}{
		{"allocator gives back, asks again, gives up", held +
			"5 1 refuse 700\n6 1 give 0x40000000\n7 1 refuse 700\n8 1 oom 650\n",
			[]string{"failed framework 2 650 100"}},
		{"allocator gives back and gets it", held +
			"5 1 refuse 700\n6 1 give 0x40000000\n7 1 take 0x80000000 700\n7 1 block 0x80000000 690 4\n",
			[]string{"recovered driver 1 700 100"}},
		{"allocator gives back on a busy machine", held +
			"5 1 refuse 700\n300 1 give 0x40000000\n480 1 take 0x80000000 700\n480 1 block 0x80000000 690 4\n",
			[]string{"recovered driver 1 700 100"}},
		{"piece by piece: the first one is granted, the second is not",
			held + "5 1 refuse 20\n6 1 give 0x40000000\n7 1 take 0x80000000 20\n8 1 refuse 20\n9 1 oom 30\n",
			[]string{"failed framework 2 30 80"}},
		{"a program alone", "1 1 own 0x10000000 900\n2 1 other 200\n", []string{"failed driver 1 200 0"}},
		{"it settles for less", "1 1 own 0x10000000 900\n2 1 other 200\n3 1 own 0x80000000 50\n",
			[]string{"failed driver 1 200 0"}},
		{"another thread gets memory", "1 1 own 0x10000000 700\n2 1 other 400\n3 2 own 0x80000000 400\n",
			[]string{"failed driver 1 400 0"}},
		{"two threads", held + "5 1 refuse 700\n5 2 other 800\n6 1 oom 650\n",
			[]string{"failed framework 1 650 0", "failed driver 1 800 0"}},
		{"of two threads the first that began is told first", held + "5 1 refuse 20\n5 1 take 0x80000000 20\n" +
			"5 1 block 0x80000000 20 4\n6 2 refuse 700\n6 2 oom 650\n7 2 refuse 600\n7 2 oom 550\n",
			[]string{"recovered driver 1 20 0", "failed framework 1 650 0", "failed framework 1 550 0"}},
		{"much later is another matter", "2 1 other 2000\n300 1 other 2000\n600 1 step 1\n",
			[]string{"failed driver 1 2000 0", "failed driver 1 2000 0"}},
		{"an allocator that gave up begins anew", held + "5 1 refuse 700\n5 1 oom 650\n6 1 refuse 600\n6 1 oom 550\n",
			[]string{"failed framework 1 650 0", "failed framework 1 550 0"}},
		{"refused by itself", held + "5 1 oom 650\n", []string{"failed framework 0 650 0"}},
		{"another error", held + "5 1 invalid 700\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := oomOf(t, test.lines)
			var got []string
			for _, e := range o.Events {
				got = append(got, fmt.Sprintf("%s %s %d %d %d", e.Outcome, e.Level, e.Attempts, e.RequestedBytes/mib,
					e.ReleasedBytes/mib))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if uint64(len(test.want)) != o.Count+o.RecoveredCount {
				t.Errorf("counted %d and %d", o.Count, o.RecoveredCount)
			}
		})
	}
}

// TestOOMPicture checks every figure of one event by hand.
func TestOOMPicture(t *testing.T) {
	o := oomOf(t, `0 1 take 0x10000000 300
		0 1 take 0x40000000 100
		1 1 own 0x70000000 50
		1 1 block 0x10000000 80 3
		2 1 step 7
		3 1 block 0x18000000 20 4
		4 2 block 0x40000000 30 0
		5 1 refuse 700
		6 1 oom 650
		7 1 unblock 0x18000000 20
		20 1 sample 900 560 300 24
		30 1 take 0x80000000 1
	`)
	if len(o.Events) != 1 {
		t.Fatalf("%d events", len(o.Events))
	}
	e := o.Events[0]
	if e.Tag != "model.head" || e.Thread != "main (11)" || e.Call != "cudaMalloc" || e.Library != "libc10_cuda.so" ||
		e.Caller != "libc10_cuda.so+0x100" {
		t.Errorf("asked by %+v", e)
	}
	if e.AllocatedBytes != 130*mib || e.ReservedBytes != 400*mib || e.DriverBytes != 450*mib ||
		e.TotalBytes != 1024*mib {
		t.Errorf("figures %+v", e)
	}
	// 0x10000000+80 .. 0x18000000 (128 MiB behind the start) .. +20 .. end of 300: gaps of 48 and 152; the second
	// segment leaves 70.
	pieces := report.Fragments{FreeBytes: 270 * mib, FreePieces: 3, LargestFreeBytes: 152 * mib,
		PageFreeBytes: (40 + 140 + 60) * mib}
	want := report.OOMAllocator{ReservedBytes: 400 * mib, AllocatedBytes: 130 * mib, IdleBytes: 270 * mib,
		Pieces: pieces, Common: pieces}
	if e.Allocator == nil || !reflect.DeepEqual(*e.Allocator, want) {
		t.Errorf("allocator %+v, want %+v", e.Allocator, want)
	}
	rows := map[string]uint64{}
	for _, row := range e.Ledger("tag").Rows {
		rows[row.Owner+" "+row.Key] = row.Bytes / mib
	}
	// The device says 560 of this process, of which 450 are tracked: the rest is the context's.
	wantRows := map[string]uint64{"blocks model": 80, "blocks model.head": 20, "blocks (untagged)": 30,
		"outside own": 50, "slack slack": 270,
		"others other processes": 300, "context CUDA context and code": 110,
		"kept driver and firmware": 24, "remainder reported by the device, not tracked": 16}
	if !reflect.DeepEqual(rows, wantRows) {
		t.Errorf("rows %v, want %v", rows, wantRows)
	}
	// CUDA's 1000 MiB leave out the 24 that the driver keeps, which are in use: on the first real device so much was
	// missing from what was free.
	if e.UsedBytes != 900*mib || e.FreeBytes != 124*mib {
		t.Errorf("%d used, %d free", e.UsedBytes/mib, e.FreeBytes/mib)
	}
	if e.Since == nil || e.Since.What != "step 7" || e.Since.Bytes != 50*mib || e.Since.Rows[0].Key != report.Untagged {
		t.Errorf("since %+v", e.Since)
	}
}

// TestOOMMoments: --at oom is the state that the event describes, computed another way.
func TestOOMMoments(t *testing.T) {
	const lines = "0 1 take 0x10000000 300\n1 1 block 0x10000000 80 3\n2 1 refuse 900\n3 1 take 0x80000000 900\n3 1 block 0x80000000 899 4\n3 1 unblock 0x80000000 899\n" +
		"400 1 block 0x18000000 20 4\n401 1 refuse 900\n402 1 oom 900\n403 1 unblock 0x18000000 20\n"
	for text, want := range map[string]uint64{"oom": 100, "oom:1": 80, "oom:2": 100} {
		at, err := moment.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Summarize(oomLines(t, lines), Options{Question: Question{At: at}})
		if err != nil {
			t.Fatal(err)
		}
		if s.At == nil || s.At.Framework.LiveBytes != want*mib {
			t.Errorf("%s: %+v", text, s.At)
		}
	}
	for text, words := range map[string]string{"oom:3": "oom:2 is the last", "oom:0": "", "oom:x": ""} {
		at, err := moment.Parse(text)
		if err == nil {
			_, err = Summarize(oomLines(t, lines), Options{Question: Question{At: at}})
		}
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
	at, _ := moment.Parse("oom")
	if _, err := Summarize(oomLines(t, "0 1 take 0x10000000 300\n"), Options{Question: Question{At: at}}); err == nil ||
		!strings.Contains(err.Error(), "never ran out") {
		t.Errorf("a run with memory enough: %v", err)
	}
}

// TestOOMRowsAgainstMoment compares the walk over live blocks with the totals that are kept as events come, on random
// streams.
func TestOOMRowsAgainstMoment(t *testing.T) {
	at, err := moment.Parse("oom:1")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for seed := range uint64(60) {
		src := &memorySource{events: randomStream(seed, streamShape{events: 600})}
		fillTables(&src.tables)
		for i := range src.events {
			if d := &src.events[i].Device; *d > 0 {
				*d = 0 // one device: a moment's rows are those of all devices
			}
		}
		s, err := Summarize(src, Options{Question: Question{Groupings: []string{"tag"}, At: at}})
		if err != nil {
			continue
		}
		e := s.OOM.Events[0]
		if !e.Detailed {
			continue
		}
		for _, g := range s.At.Groups {
			if g.Level != e.Ledger("tag").Level {
				continue
			}
			var want, got []string
			for _, row := range g.Rows {
				want = append(want, fmt.Sprint(row.Key, " ", row.LiveBytes))
			}
			for _, row := range e.Ledger("tag").Rows {
				if row.Owner == report.OwnerBlocks && row.Bytes > 0 {
					got = append(got, fmt.Sprint(row.Key, " ", row.Bytes))
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if unknown := s.At.Devices[0]; unknown.Index < 0 &&
				unknown.Driver.LiveBytes+unknown.Framework.LiveBytes > 0 {
				continue // blocks of no known device are in the moment's rows
			}
			compared++
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: the event has %q, the moment %q", seed, got, want)
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d streams could be compared", compared)
	}
}

// TestOOMIsBounded: a program that runs out of memory all the time is counted to the end and described at the
// beginning.
func TestOOMIsBounded(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("0 1 take 0x10000000 300\n0 1 block 0x10000000 200 3\n")
	const times = 300
	for i := range times {
		fmt.Fprintf(&lines, "%d 1 refuse 900\n%d 1 oom 900\n", i, i)
	}
	o := oomOf(t, lines.String())
	detailed := 0
	for _, e := range o.Events {
		if e.Detailed {
			detailed++
		}
	}
	if o.Count != times || o.RefusedCount != times || len(o.Events) != oom.MaxEvents || detailed != oom.MaxDetailed {
		t.Errorf("%d counted, %d refused, %d listed, %d detailed", o.Count, o.RefusedCount, len(o.Events), detailed)
	}
}

func TestOOMSectionIsBounded(t *testing.T) {
	r := &report.OOMReport{Event: report.OOMEvent{Seq: 9}}
	l := report.Ledger{By: "tag", WholeBytes: 20000 * 3}
	for i := range 20000 {
		l.Rows = append(l.Rows,
			report.LedgerRow{Owner: report.OwnerBlocks, Key: strings.Repeat("module.", 20) + fmt.Sprint(i), Bytes: 3})
	}
	l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerSlack, Key: "slack", Bytes: 7})
	r.Event.Ledgers = []report.Ledger{l}
	text, err := r.Section()
	if err != nil || len(text) > trace.MaxOOMBytes || !strings.Contains(text, "more)") ||
		!strings.Contains(text, `"slack"`) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	var sum uint64
	for _, row := range r.WithRows(200).Event.Ledgers[0].Rows {
		sum += row.Bytes
	}
	if sum != 20000*3+7 {
		t.Errorf("the rows of the shorter report add up to %d", sum)
	}
}

// Records that were lost before memory ran out may have changed every owner of the picture: the event says how many
// there were, also where the recorder itself tells the story.
func TestOOMTellsOfLostRecords(t *testing.T) {
	refusal := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice,
		API: api("cuMemAlloc_v2"), Size: 9 * mib, Status: oom.StatusOutOfMemory}
	events := (&story{}).alloc(cuda.MemoryDevice, 0x1000, mib).add(trace.Lost{Count: 7}.Event(0)).add(refusal).events
	tables := &trace.Tables{}
	watch := oom.NewWatch(tables, trace.Info{}, 1<<40)
	watch.Apply(events)
	watch.Finish()
	reports := watch.Take()
	if len(reports) != 1 || reports[0].Event.LostRecords != 7 {
		t.Fatalf("reports %+v, want one that speaks of 7 lost records", reports)
	}
}
