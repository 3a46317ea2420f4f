package analyzer

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// TestNotes gives every reason for a note once, and checks that the note comes and that no other does.
func TestNotes(t *testing.T) {
	driver := (&story{}).alloc(cuda.MemoryDevice, 0x1000, 100).free(cuda.MemoryDevice, 0x1000).events
	framework := func(reserved, allocated uint64) []trace.Event {
		s := (&story{}).alloc(cuda.MemoryDevice, 0x1000, 1000).change(func(e *trace.Event) { e.Stack = stackAllocator })
		return s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Addr: 0x1000, Size: 400,
			Stack: stackAllocator, Reserved: reserved,
			Allocated: allocated}).events
	}
	torch := func(key, value string) trace.Info { return trace.Info{"framework.torch": "2.7.1", key: value} }
	tests := []struct {
		name string
		src  memorySource
		opts Options
		want []string
	}{
		{"nothing to say", memorySource{events: driver}, Options{}, nil},
		{"framework in order", memorySource{events: framework(1000, 400)}, Options{}, nil},
		{"no call", memorySource{}, Options{}, []string{"made no CUDA memory call"}},
		{"filtered away", memorySource{events: driver}, Options{Tag: "x"},
			[]string{"No allocation passes the filters"}},
		{"async backend",
			memorySource{events: driver, info: torch("env.PYTORCH_CUDA_ALLOC_CONF",
				"max_split_size_mb:8, backend: cudaMallocAsync")}, Options{},
			[]string{"under backend:cudaMallocAsync; the driver level is complete"}},
		{"async backend, new name",
			memorySource{events: driver, info: torch("env.PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync")}, Options{},
			[]string{"under backend:cudaMallocAsync"}},
		{"caching off", memorySource{events: driver, info: torch("env.PYTORCH_NO_CUDA_MEMORY_CACHING", "1")}, Options{},
			[]string{"switched off (PYTORCH_NO_CUDA_MEMORY_CACHING)"}},
		{"torch silent", memorySource{events: driver, info: torch("x", "")}, Options{},
			[]string{"loaded but reported no blocks"}},
		{"torch speaks", memorySource{events: framework(1000, 400), info: torch("env.PYTORCH_CUDA_ALLOC_CONF",
			"backend:cudaMallocAsync")}, Options{}, nil},
		{"counters differ", memorySource{events: framework(900, 300)}, Options{},
			[]string{"reserved bytes at 1 event, allocated bytes at 1 event"}},
		{"lost", memorySource{events: driver, lost: [3]uint64{7, 2, 0}}, Options{},
			[]string{"7 records were dropped because the rings were full and 2 threads"}},
		{"truncated", memorySource{events: driver, health: trace.Health{Truncated: true, TruncatedAt: 99,
			Reason: "cut"}}, Options{}, []string{"at byte 99 (cut)"}},
		{"calls in flight", memorySource{events: driver, health: trace.Health{InFlight: 2}}, Options{},
			[]string{"2 calls were in flight at the end"}},
		{"altered", memorySource{events: driver, health: trace.Health{Altered: "1 section too few"}}, Options{},
			[]string{"changed after it was written (1 section too few)"}},
		{"drain off", memorySource{events: driver, info: trace.Info{"drain": "off: no address space"}}, Options{},
			[]string{"(no address space)"}},
		{"null GPU", memorySource{events: driver, info: trace.Info{"nullgpu": "1"}}, Options{}, []string{"null GPU"}},
		{"blind", memorySource{events: driver, info: trace.Info{"blind": "libfoo.so was opened with RTLD_DEEPBIND"}},
			Options{},
			[]string{"bypassed the recorder (libfoo.so was opened with RTLD_DEEPBIND)"}},
		{"unhooked", memorySource{events: driver, info: trace.Info{"unhooked.cuMemAlloc": "14010",
			"unhooked.cuMemCreate": "?"}}, Options{},
			[]string{"than this memtrace supports: cuMemAlloc (CUDA 14.1), cuMemCreate. They work"}},
		{"many unhooked", memorySource{events: driver, info: trace.Info{"unhooked.a": "13000", "unhooked.b": "13000",
			"unhooked.c": "13000", "unhooked.d": "13000",
			"unhooked.e": "13000", "unhooked.f": "13000", "unhooked.g": "13000"}}, Options{},
			[]string{"e (CUDA 13.0), 2 more. They work"}},
		{"implicit frees",
			memorySource{events: (&story{}).alloc(cuda.MemoryDevice, 0x1000, 2048).owned(1).alloc(cuda.MemoryHost,
				0x1000, 9).owned(1).
				destroy(cuda.ObjectContext, 1).events}, Options{},
			[]string{"1 block of device memory (2.00 KiB), 1 block of pinned host memory (9 B)"}},
		{"estimates", memorySource{events: (&story{}).alloc(cuda.MemoryArray, 0x1000,
			9).change(func(e *trace.Event) { e.Flags = 6 }).events}, Options{},
			[]string{"1 allocation has an estimated size; 1 was seen in the runtime only"}},
		{"foreign", memorySource{events: (&story{}).alloc(cuda.MemoryForeign, 0x1000, 9).events}, Options{},
			[]string{"opened from other processes"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fillTables(&test.src.tables)
			s, err := Summarize(&test.src, test.opts)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Notes) != len(test.want) {
				t.Fatalf("%d notes, want %d: %q", len(s.Notes), len(test.want), s.Notes)
			}
			for i, want := range test.want {
				if !strings.Contains(s.Notes[i], want) {
					t.Errorf("note %q, want %q in it", s.Notes[i], want)
				}
			}
		})
	}
}

// TestSlackIsNeverNegativeInALedger: a framework that counts more than the driver gave it leaves a note, not a negative
// row.
func TestSlackIsNeverNegativeInALedger(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryDevice, 0x1000, 100).change(func(e *trace.Event) { e.Stack = stackAllocator }).
		add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Addr: 0x1000, Size: 400,
			Stack: stackAllocator}).summary(t, Options{})
	l := s.Ledger("library")
	if l.SlackBytes != -300 || len(l.Rows) != 1 || l.WholeBytes != 400 {
		t.Errorf("ledger %+v", l)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "counts more bytes in blocks") {
		t.Errorf("notes %q", s.Notes)
	}
}

func TestProcessFacts(t *testing.T) {
	src := &memorySource{info: trace.Info{"process.pid": "4711", "process.argv": "python3\x00train.py\x00",
		"process.start_unix_ns": "1500000000000000001",
		"framework.torch":       "2.7.1", "cuda.driver_version": "12.6"}, end: &trace.End{Time: 99}}
	s, err := Summarize(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Process; p.PID != 4711 || len(p.Args) != 2 || p.Started != "2017-07-14T02:40:00.000000001Z" ||
		p.Ended != report.EndedClean || p.DurationNS != 99 {
		t.Errorf("process %+v", p)
	}
	if s.Versions["torch"] != "2.7.1" || s.Versions["cuda_driver"] != "12.6" || len(s.Versions) != 2 {
		t.Errorf("versions %v", s.Versions)
	}
	src.end = nil
	if s, _ = Summarize(src, Options{}); s.Process.Ended != report.EndedKilled {
		t.Errorf("without an end the run ended %q", s.Process.Ended)
	}
	if s, _ = Summarize(&runningSource{}, Options{}); s.Process.Ended != report.EndedRunning {
		t.Errorf("a running process ended %q", s.Process.Ended)
	}
}

// runningSource is a source that knows how its process is doing, as spools do.
type runningSource struct{ memorySource }

func (*runningSource) Ended() string { return report.EndedRunning }
