package symbol

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"memtrace/internal/safefile"
	"memtrace/trace"
)

const (
	// maxPerfMap bounds the bytes read of a map, maxPerfEntries its functions.
	maxPerfMap, maxPerfEntries = 256 << 20, 4 << 20
	maxPerfLine                = 64 << 10
)

// trampoline is the prefix in CPython's own map (-X perf) of the code between its loop and a Python function:
// py::NAME:FILE.
const trampoline = "py::"

// perfMap is the functions that a compiler made while the program ran.
type perfMap struct {
	functions []jitFunction // by start
}

type jitFunction struct {
	span
	name string
}

// perfMapPath is where the map of a run may be; "" where none can be.
func perfMapPath(o *Options, info trace.Info) string {
	if o.PerfMap != "" {
		return o.PerfMap
	}
	pid, err := strconv.ParseUint(info["process.pid"], 10, 31)
	host, _ := os.Hostname()
	if err != nil || o.NoFiles || info["process.host"] != host {
		return ""
	}
	return fmt.Sprintf("/tmp/perf-%d.map", pid)
}

// openPerfMap reads the map of a run; nil if there is none. A map found by process number must be of the same host and
// user, and be younger than the run's first record.
func openPerfMap(o *Options, info trace.Info) (*perfMap, error) {
	path := perfMapPath(o, info)
	if path == "" {
		return nil, nil
	}
	file, err := safefile.OpenUnlinked(path, safefile.MaxSize)
	if err != nil {
		if o.PerfMap == "" {
			return nil, nil
		}
		return nil, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil || o.PerfMap == "" && !ofRun(st, info) {
		return nil, err
	}
	return readPerfMap(io.NewSectionReader(file, 0, st.Size()))
}

func ofRun(st os.FileInfo, info trace.Info) bool {
	start, err := strconv.ParseInt(info["process.start_unix_ns"], 10, 64)
	owner, ok := st.Sys().(*syscall.Stat_t)
	return err == nil && ok && int(owner.Uid) == os.Getuid() && st.ModTime().UnixNano() >= start
}

// readPerfMap reads lines of "START SIZE NAME", the numbers hexadecimal. A later function replaces the earlier ones
// that it overlaps: memory of compiled code is used again. Lines of another form are passed over.
func readPerfMap(r io.Reader) (*perfMap, error) {
	var all []jitFunction
	lines := bufio.NewScanner(io.LimitReader(r, maxPerfMap))
	lines.Buffer(nil, maxPerfLine)
	for lines.Scan() && len(all) < maxPerfEntries {
		first, rest, _ := strings.Cut(lines.Text(), " ")
		second, name, _ := strings.Cut(rest, " ")
		start, err1 := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
		size, err2 := strconv.ParseUint(strings.TrimPrefix(second, "0x"), 16, 64)
		if err1 == nil && err2 == nil && size > 0 && start+size > start && name != "" {
			all = append(all, jitFunction{span{start, start + size}, name})
		}
	}
	return newPerfMap(all), lines.Err()
}

// newPerfMap takes functions in the order in which they were compiled.
func newPerfMap(all []jitFunction) *perfMap {
	m := &perfMap{}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool {
		x, y := all[order[a]], all[order[b]]
		if x.start != y.start {
			return x.start < y.start
		}
		return order[a] < order[b]
	})
	var kept []int // indices into all, by start, none overlapping another
	for _, i := range order {
		for len(kept) > 0 && all[kept[len(kept)-1]].end > all[i].start && kept[len(kept)-1] < i {
			kept = kept[:len(kept)-1]
		}
		if len(kept) == 0 || all[kept[len(kept)-1]].end <= all[i].start {
			kept = append(kept, i)
		}
	}
	for _, i := range kept {
		m.functions = append(m.functions, all[i])
	}
	return m
}

// at returns the function at an address.
func (m *perfMap) at(address uint64) (jitFunction, bool) {
	if m == nil {
		return jitFunction{}, false
	}
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].start > address }) - 1
	if i < 0 || !m.functions[i].contains(address) {
		return jitFunction{}, false
	}
	return m.functions[i], true
}

// compiledKind distinguishes CPython's trampolines from other code compiled at run time.
func compiledKind(name string) Kind {
	if strings.HasPrefix(name, trampoline) {
		return Interpreter
	}
	return JIT
}

// frame names compiled code. CPython's trampolines represent Python frames, which the Python stack contains.
func (m *perfMap) frame(address uint64) Frame {
	frame := Frame{Kind: JIT, Address: address}
	if f, ok := m.at(address); ok {
		frame.Start = f.start
		frame.Kind = compiledKind(f.name)
		frame.FullFunction, frame.Function = readable(f.name)
	}
	return frame
}
