//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/guest"
	"memtrace/trace"
)

// pyLine is a Python frame as a traceback shows it.
type pyLine struct {
	line                 int64
	name, qualname, file string
}

func (p pyLine) String() string {
	return fmt.Sprintf("%s:%d:%s (%s)", p.file, p.line, p.name, p.qualname)
}

// place finds the same call in the oracle's log and in a trace: calls of one thread that are the same keep their order
// in both.
type place struct {
	thread int32
	level  cuda.Level
	kind   string
	addr   uint64
}

// stacks is what a trace holds of one call.
type stacks struct {
	place
	size      uint64
	native    []uint64
	nativeEnd trace.StackEnd
	python    []pyLine
	pythonEnd trace.StackEnd
	entries   int // Python frames with which C code entered the interpreter
	hasPython bool
}

// span is a range of code addresses.
type span struct{ start, end uint64 }

// sample is what the oracle reports of one.
type sample struct {
	place
	size     uint64
	state    string
	native   []uint64
	greenlet bool // the native stack is known up to the beginning of a greenlet
	python   []pyLine
}

// readEvents returns the events of a trace in their order, and its reader.
func readEvents(t *testing.T, path string) ([]trace.Event, *trace.Reader) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := trace.NewReader(bufio.NewReader(file), -1)
	if err != nil {
		t.Fatal(err)
	}
	var events []trace.Event
	for {
		batch, err := r.ReadBatch()
		events = append(events, batch...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(events, func(a, b trace.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return events, r
}

// takePython decodes a Python stack as a traceback would show it.
func (s *stacks) takePython(tables *trace.Tables, id trace.StackID) {
	frames, end := tables.PyStack(id)
	s.pythonEnd, s.hasPython = end, id != 0
	for _, f := range frames {
		if f.Entry {
			s.entries++
		}
		code, _ := tables.Code(f.Code)
		line, ok := trace.DecodeLine(code.Table, code.Lines, code.FirstLine, f.Offset)
		if !ok {
			line = -1
		}
		s.python = append(s.python, pyLine{int64(line), code.Name, code.QualName, code.File})
	}
}

// readStacks returns what a trace holds of the calls that the oracle sees, and of the interpreter: the addresses of its
// loop, and whether that pops frames.
func readStacks(t *testing.T, path string) (all []stacks, loop []span, popping bool) {
	t.Helper()
	events, r := readEvents(t, path)
	if lost, rings, dict := r.Lost(); lost+rings+dict != 0 {
		t.Errorf("%s lost %d records, %d rings, %d dictionary entries", path, lost, rings, dict)
	}
	tables := r.Tables()
	for part := range strings.SplitSeq(r.Info()["python.eval"], ",") {
		var s span
		if _, err := fmt.Sscanf(part, "%x-%x", &s.start, &s.end); err == nil {
			loop = append(loop, s)
		}
	}
	for _, e := range events {
		runtime := e.Level == cuda.LevelDriver && e.Mem == cuda.MemoryDevice && e.Status == 0 &&
			(e.Runtime.String() == "cudaMalloc" || e.Runtime.String() == "cudaFree")
		if e.Level != cuda.LevelFramework && !runtime {
			continue
		}
		thread, _ := tables.Thread(e.Thread)
		s := stacks{place: place{thread.TID, e.Level, e.Kind.String(), e.Addr}, size: e.Size,
			native: tables.Stack(e.Stack), nativeEnd: tables.StackEnd(e.Stack)}
		s.takePython(tables, e.PyStack)
		all = append(all, s)
	}
	minor, _ := strconv.Atoi(strings.Split(r.Info()["python.version"]+".0", ".")[1])
	return all, loop, minor >= 12
}

// readOracle returns the oracle's log, and the part of the interpreter's loop that has its name.
func readOracle(t *testing.T, path string) (samples []sample, loop span) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hex := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return v
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if fields[0] == "i" && len(fields) == 3 {
			loop = span{hex(fields[1]), hex(fields[2])}
			continue
		}
		if fields[0] != "e" || len(fields) != 9 {
			t.Fatalf("%s: strange line %q", path, line)
		}
		tid, err1 := strconv.ParseInt(fields[1], 10, 32)
		size, err2 := strconv.ParseUint(fields[5], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		level := cuda.LevelFramework
		if fields[2] == "r" {
			level = cuda.LevelDriver
		}
		s := sample{place: place{int32(tid), level, fields[3], hex(fields[4])}, size: size, state: fields[6]}
		for address := range strings.SplitSeq(fields[7], ",") {
			if address == "greenlet" {
				s.greenlet = true
			} else if address != "" {
				s.native = append(s.native, hex(address))
			}
		}
		for frame := range strings.SplitSeq(fields[8], "\x1e") {
			parts := strings.Split(frame, "\x1f")
			if len(parts) != 4 {
				continue // none at all
			}
			number, err := strconv.ParseInt(parts[0], 10, 32)
			if err != nil {
				number = -1 // None: the instruction belongs to no line
			}
			s.python = append(s.python, pyLine{number, parts[1], parts[2], parts[3]})
		}
		samples = append(samples, s)
	}
	return samples, loop
}

// tally counts what was compared.
type tally struct {
	points, python, cut, inThreads, skipped, early, ending, popped, differences int
	ends, pythonEnds                                                            map[trace.StackEnd]int
	// frames are popped by the loop that ran them: 3.12 and later
	popping bool
}

func (s tally) String() string {
	return fmt.Sprintf(
		"%d points, %d with Python frames, %d cut at the interpreter, %d in threads without frames; ends %v, of Python %v; %d skipped, %d before the self-test, %d while the interpreter ended, %d in a loop that had popped its last frame; %d differences",
		s.points, s.python, s.cut, s.inThreads, s.ends, s.pythonEnds, s.skipped, s.early, s.ending, s.popped,
		s.differences)
}

// compare compares one call and returns what differs, "" if nothing does.
func (s *tally) compare(got stacks, want sample, loop []span, started bool) string {
	if got.size != want.size && want.level == cuda.LevelFramework {
		return fmt.Sprintf("size %d, want %d", got.size, want.size)
	}
	s.points++
	s.ends[got.nativeEnd]++
	if len(want.python) > 0 {
		s.python++
	}
	if text := s.compareNative(got, want, loop); text != "" {
		return text
	}
	switch {
	case want.state == "skipped":
		s.skipped++
		return ""
	case want.state == "ending":
		s.ending++ // its frames may no longer be read
		if got.hasPython {
			return "a Python stack of an interpreter that ends"
		}
		return ""
	case !started && !got.hasPython && len(want.python) > 0:
		s.early++ // the interpreter is trusted only when it has passed the self-test
		return ""
	case len(want.python) == 0 && want.state != "none":
		s.inThreads++
	}
	if got.hasPython {
		s.pythonEnds[got.pythonEnd]++
	}
	expected := want.python
	if got.pythonEnd == trace.StackDepth && len(got.python) < len(expected) {
		expected = expected[:len(got.python)]
	} else if got.hasPython && got.pythonEnd != trace.StackWhole {
		return fmt.Sprintf("the Python stack ends by %s", got.pythonEnd)
	}
	if !slices.Equal(got.python, expected) {
		return "the Python stacks differ"
	}
	return s.compareEntries(got, want, loop)
}

func within(spans []span, pc uint64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return pc >= s.start && pc < s.end })
}

// compareEntries demands a Python frame with which C code entered the interpreter for each native frame of the
// interpreter's loop: by that the two stacks are merged. From 3.12 on, what a frame held is freed when it no longer is
// a frame, but its loop still runs: that loop has none, and is the innermost.
func (s *tally) compareEntries(got stacks, want sample, loop []span) string {
	if want.greenlet || got.pythonEnd != trace.StackWhole {
		return "" // what both stacks have in common is not known
	}
	native := 0
	for _, pc := range want.native {
		if within(loop, pc) {
			native++
		}
	}
	switch {
	case native == got.entries:
		return ""
	case native == got.entries+1 && want.kind == "free" && s.popping:
		s.popped++
		return ""
	}
	return fmt.Sprintf("%d native frames of the interpreter's loop for %d entries of C code", native, got.entries)
}

func (s *tally) compareNative(got stacks, want sample, loop []span) string {
	expected := want.native
	switch got.nativeEnd {
	case trace.StackInterpreter:
		s.cut++
		at := slices.IndexFunc(expected, func(pc uint64) bool { return within(loop, pc) })
		if at < 0 {
			return "cut at an interpreter where there is none"
		}
		expected = expected[:at+1]
	case trace.StackDepth:
		if len(got.native) > len(expected) {
			return "deeper than the whole stack"
		}
		expected = expected[:len(got.native)]
	case trace.StackWhole:
	default:
		if !want.greenlet {
			return fmt.Sprintf("the native stack ends by %s", got.nativeEnd)
		}
	}
	known := got.native
	if want.greenlet && got.nativeEnd != trace.StackInterpreter {
		known = known[:min(len(known), len(expected))]
		expected = expected[:len(known)]
	}
	if !slices.Equal(known, expected) {
		return "the native stacks differ"
	}
	return ""
}

// compareStacks compares every call that the oracle sampled with the trace.
func compareStacks(t *testing.T, trc, log string) tally {
	t.Helper()
	samples, named := readOracle(t, log)
	recorded := map[place][]stacks{}
	events, loop, popping := readStacks(t, trc)
	if named != (span{}) && (len(loop) == 0 || loop[0] != named) {
		t.Errorf("the trace says that the interpreter's loop lies at %x, its symbol says %x", loop, named)
	}
	for _, s := range events {
		recorded[s.place] = append(recorded[s.place], s)
	}
	sum := tally{ends: map[trace.StackEnd]int{}, pythonEnds: map[trace.StackEnd]int{}, popping: popping}
	started := false
	for _, want := range samples {
		all := recorded[want.place]
		if len(all) == 0 {
			sum.differences++
			t.Errorf("the trace has no %+v", want.place)
			continue
		}
		got := all[0]
		recorded[want.place] = all[1:]
		started = started || got.hasPython
		if want.state == "plain" {
			continue
		}
		if text := sum.compare(got, want, loop, started); text != "" {
			if sum.differences++; sum.differences <= 5 {
				t.Errorf("%s: %+v\ntrace:  %s\n%s\noracle (%s): %s\n%s", text, want.place,
					addresses(got.native, got.nativeEnd.String()), lines(got.python),
					want.state, addresses(want.native, ""), lines(want.python))
			}
		}
	}
	if sum.differences > 5 {
		t.Errorf("%d differences in all", sum.differences)
	}
	return sum
}

func addresses(list []uint64, end string) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "%x ", a)
	}
	return b.String() + end
}

func lines(list []pyLine) string {
	var b strings.Builder
	for _, l := range list {
		fmt.Fprintf(&b, "    %s\n", l)
	}
	return b.String()
}

// oracleLibrary builds the oracle once.
var oracleLibrary = sync.OnceValues(func() (string, error) {
	out := filepath.Join(guest.Root(), "build", "e2e", "oracle.so")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(guest.Root(), "testdata", "oracle", "*.c"))
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("no sources of the oracle: %w", err)
	}
	// the wrappers must have frames of their own: a tail call would hide them
	args := append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC",
		"-shared", "-fno-optimize-sibling-calls", "-o", out}, sources...)
	if text, err := exec.Command("gcc", append(args, "-ldl", "-lpthread", "-lgcc_s")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, text)
	}
	return out, nil
})

// underOracle returns the run with the oracle after the library, which writes oracle.log in the run's folder.
func (p program) underOracle(t *testing.T, rate string) program {
	t.Helper()
	oracle, err := oracleLibrary()
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(slices.Clone(p.env), "LD_PRELOAD="+library()+" "+oracle, "ORACLE_LOG=DIR/oracle.log",
		"ORACLE_RATE="+rate)
	return p
}
