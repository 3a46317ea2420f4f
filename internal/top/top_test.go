package top

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/cuda/nvml"
	"memtrace/internal/control"
)

// testHost knows no traces but those of running processes.
var testHost = &Host{
	Usage:     fmt.Errorf,
	Traces:    func(arg string) ([]string, error) { return []string{arg}, nil },
	OpenError: func(path string, err error) error { return fmt.Errorf("%s: %w", path, err) },
	ShortPath: func(path string) string { return path },
}

func bytesOf(n uint64) *uint64 { return &n }

// fakeManagement answers with a snapshot or an error.
type fakeManagement struct {
	snapshot nvml.Snapshot
	err      error
}

func (f fakeManagement) Read() (nvml.Snapshot, error) { return f.snapshot, f.err }
func (f fakeManagement) Close() error                 { return nil }

// sampleOf samples without recorded processes, with the given devices.
func sampleOf(t *testing.T, flags Options, open func() (management, error)) sample {
	t.Helper()
	flags.Interval = MinInterval
	sampler := newSampler(testHost, &flags, nil)
	sampler.finder.proc = t.TempDir()
	sampler.open = open
	defer sampler.close()
	return sampler.sample(math.MaxInt64)
}

func devices(list ...nvml.Device) func() (management, error) {
	return func() (management, error) {
		return fakeManagement{snapshot: nvml.Snapshot{Driver: "580.65", CUDA: "13.0", Devices: list}}, nil
	}
}

func oneDevice(index int, processes ...nvml.Process) nvml.Device {
	return nvml.Device{Index: index, Instance: nvml.NoInstance, Name: "Mock GPU", UUID: "GPU-" +
		string(rune('a'+index)), Processes: processes,
		Memory: &nvml.Memory{Total: 16 << 30, Used: 5 << 30, Free: 11 << 30}}
}

func pageText(s sample, open bool) string {
	page := page{sample: s, width: 100, rows: DefaultRows, ascii: true, open: func(int) bool { return open }}
	var b strings.Builder
	for _, l := range page.lines() {
		b.WriteString(strings.TrimRight(l.text(false), " ") + "\n")
	}
	return b.String()
}

func TestTopWithoutLibrary(t *testing.T) {
	s := sampleOf(t, Options{}, func() (management, error) { return nil, nvml.ErrNoLibrary })
	if s.NVML.Available || len(s.Devices) != 0 ||
		!strings.HasPrefix(s.NVML.Problem,
			"devices are not shown: no NVIDIA management library found (libnvidia-ml.so.1)") {
		t.Errorf("%+v", s)
	}
	text := strings.Join(strings.Fields(pageText(s, true)), " ")
	for _, want := range []string{"install the NVIDIA driver", "memtrace run -- PROGRAM"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// A view with a forgotten folder of control sockets shows why it is empty.
func TestTopNamesTheFolder(t *testing.T) {
	t.Setenv(control.FolderVariable, "/run/mine")
	text := strings.Join(strings.Fields(pageText(sampleOf(t, Options{}, devices()), true)), " ")
	const want = "none is recorded with its control socket in /run/mine (MEMTRACE_CONTROL_DIR)."
	if !strings.Contains(text, want) {
		t.Errorf("%q is not in %s", want, text)
	}
}

func TestTopLibraryFails(t *testing.T) {
	s := sampleOf(t, Options{}, func() (management, error) {
		return fakeManagement{err: errors.New("count devices: NVML error 999")}, nil
	})
	if !s.NVML.Available || s.NVML.Problem != "count devices: NVML error 999" {
		t.Errorf("%+v", s.NVML)
	}
}

// What the library does not report is shown as such, and is null in JSON.
func TestTopNotReported(t *testing.T) {
	d := oneDevice(0, nvml.Process{PID: 1 << 30, Compute: true})
	s := sampleOf(t, Options{}, devices(d))
	if len(s.Processes) != 1 || s.Processes[0].Devices[0].Used != nil || s.Processes[0].Untracked != nil {
		t.Fatalf("%+v", s.Processes)
	}
	if text := pageText(s, true); !strings.Contains(text, "not reported") || !strings.Contains(text, "1073741824  ?") {
		t.Error(text)
	}
	var b strings.Builder
	if err := writeJSON(&b, s); err != nil || !strings.Contains(b.String(), `"used_bytes": null`) ||
		!strings.Contains(b.String(), `"schema": "memtrace.top/1"`) {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestTopDeviceFilter(t *testing.T) {
	open := devices(oneDevice(0, nvml.Process{PID: 1 << 30, Used: bytesOf(1)}),
		oneDevice(1, nvml.Process{PID: 1<<30 + 1, Used: bytesOf(2)}))
	if s := sampleOf(t, Options{Devices: []int{1}}, open); len(s.Devices) != 1 || s.Devices[0].Index != 1 ||
		len(s.Processes) != 1 || s.Processes[0].PID != 1<<30+1 {
		t.Errorf("%+v", s)
	}
	if s := sampleOf(t, Options{Devices: []int{7}}, open); len(s.Devices) != 0 ||
		s.NVML.Problem != "there is no such device: the last one is 1" {
		t.Errorf("%+v", s.NVML)
	}
}

func TestTopPIDFilter(t *testing.T) {
	open := devices(oneDevice(0, nvml.Process{PID: 1 << 30, Used: bytesOf(1)},
		nvml.Process{PID: 1<<30 + 1, Used: bytesOf(2)}))
	if s := sampleOf(t, Options{PIDs: []int{1<<30 + 1}}, open); len(s.Devices) != 1 || len(s.Processes) != 1 ||
		s.Processes[0].PID != 1<<30+1 {
		t.Errorf("%+v", s)
	}
	f := newFinder(testHost, nil)
	f.pids = []int{os.Getppid()}
	if running := f.running(); len(running) != 1 {
		t.Errorf("%v", running)
	}
}

// MIG instances are rows of their own after their GPU, which lists no process.
func TestTopMIG(t *testing.T) {
	whole := oneDevice(0)
	whole.MIG = true
	part := oneDevice(0, nvml.Process{PID: 1 << 30, Used: bytesOf(3 << 20)})
	part.Instance, part.UUID = 2, "MIG-a"
	text := pageText(sampleOf(t, Options{}, devices(whole, part)), true)
	gpu, mig := strings.Index(text, "GPU 0  Mock GPU"), strings.Index(text, "MIG 0/2  Mock GPU")
	if gpu < 0 || mig < gpu || !strings.Contains(text[gpu:mig], "divided into MIG instances") ||
		!strings.Contains(text[mig:], "3.00 MiB") {
		t.Error(text)
	}
}

func TestTopUntracked(t *testing.T) {
	two := []share{{Index: 0, UUID: "GPU-a", Used: bytesOf(700)}, {Index: 1, UUID: "GPU-b", Used: bytesOf(400)}}
	known := []trackedLevel{{Index: 0, UUID: "GPU-b", DriverBytes: 350}, {Index: 1, UUID: "GPU-a", DriverBytes: 600}}
	for _, c := range []struct {
		name   string
		shares []share
		owners ownership
		want   any
	}{
		{"devices by UUID", two, ownership{DriverBytes: 950, Devices: known}, int64(150)},
		{"a device shown of two", two[:1], ownership{DriverBytes: 950, Devices: known}, int64(100)},
		{"the only device, UUID hidden", two[:1],
			ownership{DriverBytes: 600, Devices: []trackedLevel{{DriverBytes: 600}}}, int64(100)},
		{"nothing recorded yet", two[:1], ownership{}, int64(700)},
		{"the trace is ahead", two[:1],
			ownership{DriverBytes: 800, Devices: []trackedLevel{{UUID: "GPU-a", DriverBytes: 800}}}, int64(-100)},
		{"unknown devices", two, ownership{DriverBytes: 950, Devices: []trackedLevel{{UUID: "x"}, {UUID: "y"}}}, nil},
		{"a figure not reported", []share{two[0], {Index: 1, UUID: "GPU-b"}}, ownership{Devices: known}, nil},
		{"on no device", nil, ownership{Devices: known}, nil},
	} {
		p := process{Devices: c.shares, Owners: &c.owners}
		p.setUntracked()
		var got any
		if p.Untracked != nil {
			got = *p.Untracked
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// busySample has two devices, a recorded process on both, one that is not recorded, and a recorded one on neither.
func busySample() sample {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	untracked := int64(300 << 20)
	recorded := process{PID: 41, User: "ada", Command: "python train.py", Traced: true, Trace: "/run/train.bin",
		Untracked: &untracked,
		Devices:   []share{{Index: 0, Used: bytesOf(1324 << 20)}, {Index: 1, Used: bytesOf(0)}},
		Owners: &ownership{ReadAt: now.Add(-3 * time.Second), By: "tag", Level: "framework", Framework: "torch",
			DriverBytes: 1 << 30, FrameworkBytes: 960 << 20,
			OtherBytes: map[string]uint64{"host": 4096}, Rows: []report.LedgerRow{
				{Owner: report.OwnerBlocks, Key: "model\x1b[2J", Bytes: 640 << 20},
				{Owner: report.OwnerBlocks, Key: "optimizer", Bytes: 320 << 20},
				{Owner: report.OwnerSlack, Key: "slack", Bytes: 32 << 20},
				{Owner: report.OwnerOutside, Key: "libcublas.so.12", Bytes: 32 << 20}}}}
	part := 0.25
	return sample{Time: now, NVML: nvmlStatus{Available: true, Driver: "580.65", CUDA: "13.0"},
		Devices: []device{
			{Index: 0, Name: "Mock GPU", Used: bytesOf(5 << 30), Total: bytesOf(16 << 30), Free: bytesOf(11 << 30)},
			{Index: 1, Name: "Mock GPU", Problems: []string{"memory: not supported"}}},
		Processes: []process{recorded,
			{PID: 42, User: "bob", Command: "game", Devices: []share{{Index: 0, Used: bytesOf(1 << 20)}}},
			{PID: 43, User: "eve", Command: "serve", Devices: []share{}, Traced: true, Reading: &part}}}
}

func TestTopPage(t *testing.T) {
	const want = `memtrace top  03:04:05  driver 580.65, CUDA 13.0  3 processes, 2 recorded

GPU 0  Mock GPU  #####........... 5.00 GiB of 16.0 GiB used, 11.0 GiB free
        pid  user          on device     recorded  command
         41  ada            1.29 GiB     1.00 GiB  python train.py
             owners by tag, as of 3s ago; 960.0 MiB in blocks of PyTorch
                640.0 MiB   48.3%  ################  model\x1b[2J
                320.0 MiB   24.2%  ########........  optimizer
                 32.0 MiB    2.4%  #...............  PyTorch reserved, unused (slack)
                 32.0 MiB    2.4%  #...............  libcublas.so.12 (driver)
                300.0 MiB   22.7%  ########........  not in the trace (context, code, reserves)
             also 4.00 KiB of host memory
         42  bob            1.00 MiB           no  game

GPU 1  Mock GPU  memory not reported
  memory: not supported
        pid  user          on device     recorded  command
         41  ada                 0 B     1.00 GiB  python train.py
             owners are listed under its first device

Recorded processes not listed by a device
        pid  user          on device     recorded  command
         43  eve        not reported  reading 25%  serve
`
	if got := pageText(busySample(), true); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	closed := pageText(busySample(), false)
	if strings.Contains(closed, "owners by") || !strings.Contains(closed, "python train.py") {
		t.Error(closed)
	}
}

// Memory over time is one line, where it fits.
func TestTopOverTime(t *testing.T) {
	s := busySample()
	s.Processes[0].Owners.heights = &report.Heights{FromNS: 1e9, WidthNS: 1e9,
		PeakBytes: []uint64{1, 2, 3, 4, 5, 6, 7, 8, 8, 8}}
	s.Processes[0].Owners.peak = report.Level{PeakBytes: 1 << 30, PeakTimeNS: 8e9}
	const want = "\n             .,-=+*####  since +1.000 s, peak 1.00 GiB at +8.000 s\n"
	if page := pageText(s, true); !strings.Contains(page, want) {
		t.Error(page)
	}
}

// Rows add up to what the process holds, whether or not some are folded.
func TestTopOwnersFolded(t *testing.T) {
	s := busySample()
	for _, rows := range []int{0, 1, 2, 4, 9} {
		page := page{rows: rows}
		var sum uint64
		list := page.ownerList(&s.Processes[0])
		for _, row := range list {
			sum += row.bytes
		}
		if sum != 1324<<20 {
			t.Errorf("%d rows: %d bytes", rows, sum)
		}
		if rows > 0 && len(list) > rows+2 {
			t.Errorf("%d rows became %d", rows, len(list))
		}
	}
}

func newTestView(width, height int) *view {
	v := &view{host: testHost, sampler: &sampler{}, opened: map[int]bool{},
		flags: &Options{Interval: MinInterval, Rows: DefaultRows},
		width: width, height: height}
	v.take(busySample())
	return v
}

func marked(screen string) string {
	for line := range strings.SplitSeq(ansi.Strip(screen), "\n") {
		if strings.HasPrefix(line, "> ") {
			return line
		}
	}
	return ""
}

func TestTopKeys(t *testing.T) {
	v := newTestView(100, 40)
	if s := v.screen(); !strings.Contains(s, "owners by tag") || !strings.Contains(marked(s), " 41 ") {
		t.Fatal(s)
	}
	v.key("enter")
	if s := v.screen(); strings.Contains(s, "owners by tag") {
		t.Error("enter does not close the owners")
	}
	v.key("space")
	if s := v.screen(); !strings.Contains(s, "owners by tag") {
		t.Error("space does not open them")
	}
	for _, step := range []struct{ key, selected string }{{"down", "42"}, {"j", "43"}, {"j", "43"}, {"k", "42"},
		{"up", "41"}, {"up", "41"}, {"G", "43"}, {"g", "41"}} {
		v.key(step.key)
		if s := marked(v.screen()); !strings.Contains(s, " "+step.selected+" ") {
			t.Errorf("after %s the mark stands at %q", step.key, s)
		}
	}
	v.key("s")
	v.key("s")
	if s := v.screen(); !strings.Contains(s, "sort: command") || strings.Index(s, "game") >
		strings.Index(s, "train.py") {
		t.Error("processes are not sorted by command")
	}
	v.key("b")
	v.key("b")
	if s := v.screen(); !strings.Contains(s, "b by: module") || *v.sampler.by.Load() != "module" {
		t.Errorf("owners are not divided by module:\n%s", s)
	}
	v.key("w")
	if s := v.screen(); !strings.Contains(s, "to see process 41 in a browser, type: memtrace serve /run/train.bin") {
		t.Errorf("no command for the page:\n%s", s)
	}
	v.key("down")
	if s := v.screen(); !strings.Contains(s, "it has no page") {
		t.Errorf("a page of a program that is not recorded:\n%s", s)
	}
	v.key("w")
	v.key("?")
	if s := v.screen(); !strings.Contains(s, "leave this help") {
		t.Error("no help")
	}
	if v.key("esc") != nil || v.help {
		t.Error("esc does not leave the help")
	}
	for _, name := range []string{"q", "ctrl+c"} {
		if v.key(name) == nil {
			t.Errorf("%s does not quit", name)
		}
	}
}

// Whatever the size of the terminal, the screen fits it and shows the selected process.
func TestTopFitsTheScreen(t *testing.T) {
	for _, size := range [][2]int{{200, 60}, {80, 24}, {60, 8}, {40, 5}, {22, 2}} {
		v := newTestView(size[0], size[1])
		for _, key := range []string{"", "down", "down", "a", "a", "up"} {
			v.key(key)
			screen := ansi.Strip(v.screen())
			lines := strings.Split(screen, "\n")
			if len(lines) != size[1] {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			if marked(screen) == "" {
				t.Errorf("%v: the selected process is not on the screen:\n%s", size, screen)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] {
					t.Errorf("%v: a line of %d columns: %q", size, ansi.StringWidth(line), line)
				}
			}
		}
	}
}

// The selection stays with its process while others come and go.
func TestTopSelectionStays(t *testing.T) {
	v := newTestView(100, 40)
	v.key("down")
	s := busySample()
	slices.Reverse(s.Processes)
	v.take(s)
	if line := marked(v.screen()); !strings.Contains(line, " 42 ") {
		t.Errorf("the mark stands at %q", line)
	}
	s.Processes = busySample().Processes[2:]
	v.take(s)
	if line := marked(v.screen()); !strings.Contains(line, " 43 ") {
		t.Errorf("after its process ended the mark stands at %q", line)
	}
	s.Processes = nil
	v.take(s)
	v.key("down")
	v.screen()
}

func TestMappedSpools(t *testing.T) {
	dir := t.TempDir()
	const maps = `55e0c0000000-55e0c0001000 r--p 00000000 08:01 42                         /usr/bin/python3
7f0000000000-7f0000001000 rw-s 00000000 08:01 43                         /tmp/my run/t.bin.spool
7f0000001000-7f0000002000 rw-s 00001000 08:01 43                         /tmp/my run/t.bin.spool
7f0000002000-7f0000003000 rw-s 00000000 08:01 44                         /tmp/gone.bin.spool (deleted)
7f0000003000-7f0000004000 rw-s 00000000 08:01 45                         /tmp/a\012b.bin.spool
7f0000004000-7f0000005000 rw-p 00000000 00:00 0                          [heap]
7f0000005000-7f0000006000 rw-s 00000000 08:01 46                         /tmp/x.spool.txt
`
	if err := os.WriteFile(filepath.Join(dir, "maps"), []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := mappedSpools(dir), []string{"/tmp/my run/t.bin.spool", "/tmp/a\nb.bin.spool"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := mappedSpools(filepath.Join(dir, "none")); got != nil {
		t.Errorf("of a process that is gone: %q", got)
	}
}

func TestNamespacePIDs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tx\nNSpid:\t4711\t12\nUid:\t0\n"), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	if got := namespacePIDs(dir, 4711); !got[4711] || !got[12] || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestProcessStart(t *testing.T) {
	proc := t.TempDir()
	for pid, stat := range map[string]string{"7": "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0",
		"8": "8 (x) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0", "9": "9 (x"} {
		if err := errors.Join(os.Mkdir(filepath.Join(proc, pid), 0o700), os.WriteFile(filepath.Join(proc, pid, "stat"),
			[]byte(stat), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if start, ok := processStart(proc, 7); !ok || start != 98765 {
		t.Errorf("%d, %v", start, ok)
	}
	for _, pid := range []int{8, 9, 10} {
		if _, ok := processStart(proc, pid); ok {
			t.Errorf("process %d is taken to run", pid)
		}
	}
}

func TestDescribeProcess(t *testing.T) {
	user, command := userNames{}.describe(os.Getpid())
	if user == "?" || !strings.Contains(command, filepath.Base(os.Args[0])) {
		t.Errorf("user %q, command %q", user, command)
	}
	if user, command := (userNames{}).describe(1 << 30); user != "?" || command != "?" {
		t.Errorf("user %q, command %q of no process", user, command)
	}
}

// Reading a trace that cannot be read, and one whose spool is cut while it is read, ends in words.
func TestTopReaderProblem(t *testing.T) {
	r := newReader(testHost, found{tracePath: filepath.Join(t.TempDir(), "no.bin"), trace: "no.bin"}, "", false)
	<-r.advance()
	if owners, problem, fraction := r.state(); owners != nil || fraction != nil ||
		!strings.Contains(problem, "no such file") {
		t.Errorf("owners %v, problem %q, fraction %v", owners, problem, fraction)
	}
	r.profile = new(analyzer.Profile) // as broken as it can be: without a source
	r.next = time.Time{}
	<-r.advance()
	if _, problem, _ := r.state(); !strings.Contains(problem, "internal fault") {
		t.Errorf("problem %q", problem)
	}
	r.profile = nil
	r.close()
	if r.advance() != nil {
		t.Error("a closed reader reads")
	}
}

// The last figures are those of a reading that began after they were requested: neither one under way counts, nor the
// rest that a reader takes after a long one.
func TestTopLatestReadsAgain(t *testing.T) {
	r := newReader(testHost, found{tracePath: filepath.Join(t.TempDir(), "no.bin"), trace: "no.bin"}, "", false)
	r.owners = &ownership{}
	r.next = time.Now().Add(time.Hour)
	if r.advance() != nil {
		t.Fatal("the reader takes no rest")
	}
	wasRead := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.problem != ""
	}
	<-r.latest()
	if !wasRead() {
		t.Error("the trace was not read")
	}
	r.mu.Lock()
	r.problem, r.done = "", make(chan struct{})
	r.mu.Unlock()
	latest := r.latest()
	r.mu.Lock()
	close(r.done) // a long reading that began earlier ends
	r.done, r.next = nil, time.Now().Add(time.Hour)
	r.mu.Unlock()
	<-latest
	if !wasRead() {
		t.Error("the trace was read only as far as it had been before")
	}
}

// Quitting does not wait for a driver that does not answer.
func TestTopCloseWhileSampling(t *testing.T) {
	asked, answer := make(chan bool), make(chan bool)
	sampler := newSampler(testHost, &Options{Interval: MinInterval}, nil)
	sampler.finder.proc = t.TempDir()
	sampler.open = func() (management, error) {
		asked <- true
		<-answer
		return nil, nvml.ErrNoLibrary
	}
	done := make(chan bool)
	go func() {
		sampler.sample(0)
		close(done)
	}()
	<-asked
	sampler.close()
	close(answer)
	<-done
}

// The help was cut at 100 columns, and at 60.
func TestTopHelpFitsTheScreen(t *testing.T) {
	v := newTestView(60, 20)
	v.key("?")
	for line := range strings.SplitSeq(v.screen(), "\n") {
		if ansi.StringWidth(line) > 60 {
			t.Errorf("%d columns: %q", ansi.StringWidth(line), line)
		}
	}
}

// At 60 columns four rows of a server read "serve", since bars took the space of names.
func TestTopNamesStayApart(t *testing.T) {
	p := page{width: 60}
	list := []owner{{"inference/server.py:18 answer_in_thread (layer 3)", 4},
		{"inference/server.py:19 answer_in_thread (layer 12)", 3}, {"inference/server.py:20 answer_in_thread (layer 4)",
			2}}
	indent, names, wide := p.ownerNames(list)
	if wide || indent+22+ansi.StringWidth(names[0]) > 60 || names[0] == names[1] || names[1] == names[2] ||
		names[0] == names[2] {
		t.Errorf("indent %d, bars %v: %q", indent, wide, names)
	}
	for _, name := range names {
		if ansi.StringWidth(name) < 25 {
			t.Errorf("%q has less room than there is", name)
		}
	}
	p.width = 100
	if _, names, wide := p.ownerNames(list); !wide || names[0] == names[1] {
		t.Errorf("bars %v, %q", wide, names)
	}
}
