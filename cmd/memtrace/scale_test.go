package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/textform"
	"memtrace/trace"
)

// scaleTrace writes the text of a trace, entry by entry.
type scaleTrace struct {
	dictionary, events bytes.Buffer
	seq                int
}

func (s *scaleTrace) entry(format string, args ...any) {
	fmt.Fprintf(&s.dictionary, format+"\n", args...)
}

func (s *scaleTrace) event(kind, format string, args ...any) {
	s.seq++
	fmt.Fprintf(&s.events, "%s seq=%d time=%d %s\n", kind, s.seq, 1000+s.seq, fmt.Sprintf(format, args...))
}

// block allocates the i-th block.
func (s *scaleTrace) block(i int, more string, args ...any) {
	s.event("alloc", "level=framework api=1 mem=device addr=%#x size=%d thread=1 %s", 0x7f0000000000+i*0x1000, 512+
		i%1000, fmt.Sprintf(more, args...))
}

func (s *scaleTrace) encode(t *testing.T, path string) {
	t.Helper()
	text := fmt.Sprintf(
		"trace version=1\ndevice index=0 name=\"GPU\" uuid=\"GPU-1\" total=85899345920\n%s%sflush watermark=%d\nend reason=\"exit\" events=%d time=%d\n",
		s.dictionary.Bytes(), s.events.Bytes(), s.seq+1, s.seq, s.seq+2000)
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scales are what a trace may have many of, and the queries for it. How many of each there are for one of n is such
// that a search for each of them would show.
var scales = []struct {
	name string
	fill func(s *scaleTrace, n int)
	ask  []string
}{
	{"tags", func(s *scaleTrace, n int) {
		for i := range 4 * n {
			s.entry(`string id=%d value="tag%d"`, i+1, i)
			s.block(i, "tag=%d", i+1)
		}
	}, []string{"report --by tag", "diff --by tag", "export perfetto -o -", "export memory_viz -o -"}},
	{"Python sites", func(s *scaleTrace, n int) {
		for i := range 3 * n {
			s.entry(`code id=%d name="f%d" qualname="f%d" file="/home/u/x%d.py" line=10`, 2*i+1, i, i, i)
			s.entry(`pystack id=%d frames=%d+4`, 2*i+2, 2*i+1)
			s.block(i, "pystack=%d", 2*i+2)
		}
	}, []string{"report --by site", "export dhat -o -", "export memory_viz -o -"}},
	{"object files", func(s *scaleTrace, n int) {
		for i := range n {
			start := 0x400000000 + i*0x10000
			s.entry(`module id=%d start=%#x end=%#x base=%#x path="/nowhere/lib%d.so" buildid="abcdabcd%08x"`, 2*i+1,
				start, start+0x10000, start, i, i)
			s.entry(`stack id=%d frames=%#x`, 2*i+2, start+0x100)
			s.block(i, "stack=%d", 2*i+2)
		}
	}, []string{"report --by library"}},
	{"names", func(s *scaleTrace, n int) {
		s.entry(`info key="adapter.torch" value="on"`)
		s.entry(`string id=1 value="m"`)
		for i := range n {
			s.entry(`string id=%d value="h.%d.w%d.weight"`, i+10, i%1000, i/1000)
			s.block(i, "")
		}
		s.event("mark", "thread=1 name=1")
		for i := range n {
			s.event("name", "thread=1 addr=%#x size=100 category=2 handle=%#x name=%d", 0x7f0000000000+i*0x1000,
				0x10000+i, i+10)
		}
	}, []string{"report --at mark:m --by name", "diff --view parameters"}},
	{"states of one parameter", func(s *scaleTrace, n int) {
		s.block(0, "")
		for i := range 2 * n {
			s.entry(`string id=%d value="s%d:h.weight"`, i+10, i)
			s.event("name", "thread=1 addr=%#x size=100 category=5 handle=0x10 name=%d", 0x7f0000000000, i+10)
		}
	}, []string{"report --view parameters --csv -", "diff --view parameters"}},
	{"threads", func(s *scaleTrace, n int) {
		for i := range n {
			s.entry(`thread id=%d tid=%d name="t%d"`, i+2, i+2, i)
			s.event("alloc", "level=driver api=cuMemAlloc_v2 mem=device addr=%#x size=512 thread=%d", 0x7f0000000000+
				i*0x1000, i+2)
			s.event("alloc", "level=driver api=cuMemAlloc_v2 mem=device size=990971520000 status=2 thread=%d", i+2)
			s.event("oom", "level=framework size=990971520000 thread=%d", i+2)
		}
	}, []string{"report --by thread", "report --at oom"}},
	{"marks and steps", func(s *scaleTrace, n int) {
		for i := range n {
			s.entry(`string id=%d value="m%d"`, i+1, i)
			s.block(i, "")
			s.event("mark", "thread=1 name=%d", i+1)
			s.event("step", "thread=1 count=%d", i+1)
		}
	}, []string{"report", "report --view iterations", "export perfetto -o -", "export memory_viz -o -"}},
	{"facts", func(s *scaleTrace, n int) {
		for i := range n {
			s.entry(`info key="unhooked.f%d" value="1"`, i)
		}
		s.block(0, "")
	}, []string{"report", "info"}},
	{"a long word", func(s *scaleTrace, n int) {
		s.entry(`info key="process.command" value="%s"`, strings.Repeat("A", min(50*n, trace.MaxString)))
		s.entry(`string id=1 value="%s"`, strings.Repeat("A", min(50*n, trace.MaxString)))
		s.block(0, "tag=1")
	}, []string{"report --by tag", "info"}},
	{"many units", func(s *scaleTrace, n int) {
		s.entry(`info key="process.command" value="%s"`, strings.Repeat("s ", min(25*n, trace.MaxString/2)))
		s.block(0, "")
	}, []string{"report"}},
	{"deep tags", func(s *scaleTrace, n int) {
		for id, name := range []string{"a.", "b."} {
			s.entry(`string id=%d value="%s"`, id+1, strings.Repeat(name, min(5*n, trace.MaxString/4)))
		}
		for i := range 100 {
			s.block(i, "tag=%d", i%2+1)
		}
	}, []string{"report --by tag", "export perfetto -o -"}},
	{"deep modules", func(s *scaleTrace, n int) {
		s.entry(`info key="adapter.torch" value="on"`)
		s.entry(`string id=1 value="%sweight"`, strings.Repeat("a.", min(5*n, trace.MaxString/4)))
		s.block(0, "")
		s.event("name", "thread=1 addr=%#x size=100 category=2 handle=0x10 name=1", 0x7f0000000000)
	}, []string{"report", "report --view modules --depth 1000000", "report --view parameters"}},
}

// A report of a hundred thousand tags took a minute and a word of a million letters hung it for longer: rows were
// searched for one by one, a word was copied for each of its lines, live blocks were counted again for each iteration.
// Ten times as much may cost ten times as much and a little, but not a hundred times.
//
// What is compared is processor time in one process, the best of several tries, so the machine's speed and load do not
// count. SCALE is the larger number.
func TestCostGrowsWithSize(t *testing.T) {
	// linear work that falls out of the caches gets to 15; what was mended got to between 40 and 95, or never came to
	// its end
	const most = 30
	large := 20_000
	if text := os.Getenv("SCALE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		large = n
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, scale := range scales {
		t.Run(scale.name, func(t *testing.T) {
			var paths [2]string
			for i, n := range []int{large / 10, large} {
				paths[i] = filepath.Join(t.TempDir(), "trace.bin")
				var s scaleTrace
				scale.fill(&s, n)
				s.encode(t, paths[i])
			}
			for _, ask := range scale.ask {
				var ratio float64
				for range 4 {
					if ratio = costOf(t, ask, paths[1]) / costOf(t, ask, paths[0]); ratio <= most {
						break
					}
				}
				t.Logf("memtrace %s: %.1f times the cost for 10 times the size", ask, ratio)
				if ratio > most {
					t.Errorf("memtrace %s: %.0f times the cost for 10 times the size", ask, ratio)
				}
			}
		})
	}
}

// costOf returns the processor time of a command line, in seconds; that of short ones is the mean of several.
func costOf(t *testing.T, ask, path string) float64 {
	t.Helper()
	args := append(strings.Fields(ask), path)
	if strings.HasPrefix(ask, "diff") {
		args = append(args, path)
	}
	const enough = 0.05
	begin, times := processorTime(t), 0
	for {
		if _, errs := execute(t, args); strings.Contains(errs, "memtrace "+args[0]+":") {
			t.Fatalf("%v: %s", args, errs)
		}
		times++
		if took := processorTime(t) - begin; took > enough {
			return took / float64(times)
		}
	}
}

func processorTime(t *testing.T) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
