package hostile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/guest"
)

// ledgerRun is one run of the random ledger, a program that does at random with memory whatever the hooked functions
// can and keeps its own account (testdata/guest/ledger).
type ledgerRun struct {
	seed             int
	threads, devices int
	steps            int
	words            []string // serial, ends, drain, reset
	runtime          string   // version, or static and version
	env              []string
	killed           bool
}

func (l ledgerRun) String() string {
	return fmt.Sprintf("seed %d, %d threads, %d devices, %d steps, runtime %s, %s %v killed %v", l.seed, l.threads,
		l.devices, l.steps, l.runtime, l.words, l.env, l.killed)
}

// ledgerOf chooses a run by its seed: every other one is serial, every fifth is killed; what has to be there in any few
// seeds in a row goes by the seed, the rest by chance.
func ledgerOf(seed, steps int) ledgerRun {
	random := rand.New(rand.NewPCG(uint64(seed), 15))
	l := ledgerRun{seed: seed, threads: 1 << random.IntN(8), devices: 1 + seed%3, steps: steps, killed: seed%5 == 4}
	l.runtime = []string{"11", "12", "13", "static12", "static11", "static13"}[seed%6]
	if seed%2 == 0 {
		l.words = append(l.words, "serial")
	}
	for _, word := range []string{"ends", "drain", "reset"} {
		if word == "ends" && seed%4 < 2 || word != "ends" && random.IntN(2) == 0 {
			l.words = append(l.words, word)
		}
	}
	if random.IntN(2) == 0 {
		l.env = append(l.env, "NULLCUDA_PAGES=2M")
	}
	if random.IntN(2) == 0 {
		l.env = append(l.env, "MEMTRACE_OOM=0")
	}
	return l
}

func ledgerProgram(t *testing.T, runtime string) string {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(guest.Root(), "testdata/guest/ledger/*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources")
	}
	for i := range sources {
		sources[i], _ = filepath.Rel(guest.Root(), sources[i])
	}
	flags := withDriver(t)
	name := "ledger"
	if version, static := strings.CutPrefix(runtime, "static"); static {
		name += runtime
		archive := filepath.Join(nullGPU(t), "static"+version, "libcudart_static.a")
		flags = append([]string{"-DLEDGER_STATIC_RUNTIME", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"},
			flags...)
	}
	return compile(t, name, sources, flags...)
}

// ledgerFew is as many seeds as it takes to have every kind of run.
const ledgerFew = 5

// ledgerSetting is a number from the environment: LEDGER_SEEDS, how many, LEDGER_FROM, the first one, LEDGER_STEPS, how
// much each does.
func ledgerSetting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// The program's own account, `memtrace report`, a second replay of the dump and the null driver's log agree to the
// byte, in runs of one thread and of many, on one device and several, ended by themselves and killed. Every hooked
// function is called in them.
func TestLedger(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	from, count, steps := ledgerSetting("LEDGER_FROM", 0), ledgerSetting("LEDGER_SEEDS", ledgerFew),
		ledgerSetting("LEDGER_STEPS", 20000)
	ran := 0
	for seed := from; seed < from+count; seed++ {
		l := ledgerOf(seed, steps)
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			ran++
			t.Log(l)
			dir := l.run(t)
			for name, n := range checkLedger(t, ledgerProgram(t, l.runtime), dir, l.killed) {
				calls[name] += n
			}
		})
	}
	for _, level := range []string{"DRIVER", "RUNTIME"} {
		for _, name := range hookedNames(t, level) {
			if ran >= ledgerFew && calls[name] == 0 {
				t.Errorf("%s is hooked, and the ledger never calls it: testdata/guest/ledger needs it", name)
			}
		}
	}
}

// command starts it in a folder, by the words before it if there are any; only the program itself has the library.
func (l ledgerRun) command(t *testing.T, dir string, before ...string) *exec.Cmd {
	t.Helper()
	env := []string{"NULLCUDA_LOG=null.%p.log", "NULLCUDA_DEVICES=" + strconv.Itoa(l.devices),
		"NULLCUDA_DRIVER_VERSION=13050", "MEMTRACE_NVML=0", "MEMTRACE_SPOOL_MAX=1G"}
	if !strings.HasPrefix(l.runtime, "static") {
		env = append(env, "LEDGER_RUNTIME="+runtimePath(t, l.runtime))
	}
	args := append(append(before, "env"), run{preload: []string{""}, env: append(env, l.env...)}.environment(t)...)
	args = append(args, ledgerProgram(t, l.runtime), filepath.Join(dir, "book"), strconv.Itoa(l.seed),
		strconv.Itoa(l.threads), strconv.Itoa(l.devices), strconv.Itoa(l.steps))
	cmd := exec.Command(args[0], append(args[1:], l.words...)...)
	cmd.Dir = dir
	return cmd
}

// run leaves books, logs and traces in a folder.
func (l ledgerRun) run(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := l.command(t, dir)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if l.killed {
		killInTheMiddle(cmd, dir, l.seed)
	}
	if err := cmd.Wait(); err != nil && !l.killed {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return dir
}

// killInTheMiddle waits until the driver has done part of the work, by the seed, and kills.
func killInTheMiddle(cmd *exec.Cmd, dir string, seed int) {
	log := filepath.Join(dir, fmt.Sprintf("null.%d.log", cmd.Process.Pid))
	enough := int64(rand.New(rand.NewPCG(uint64(seed), 9)).IntN(1 << 20))
	await(cmd.Process.Pid, func() bool {
		st, err := os.Stat(log)
		return err == nil && st.Size() > enough
	})
	killLedger(cmd, dir)
}

// killLedger kills one process. The other one ends by itself, without further requests: it has when only the first
// one's spool is left.
func killLedger(cmd *exec.Cmd, dir string) {
	cmd.Process.Signal(syscall.SIGKILL)
	for {
		if left, _ := filepath.Glob(filepath.Join(dir, "memtrace.*.spool")); len(left) <= 1 {
			return
		}
		time.Sleep(pace)
	}
}

// checkLedger compares both processes of a run and returns how often each hooked function was called.
func checkLedger(t *testing.T, program, dir string, killed bool) map[string]int {
	t.Helper()
	calls := map[string]int{}
	for _, name := range []string{"book", "book.peer"} {
		book := readBook(t, program, filepath.Join(dir, name))
		paths, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("memtrace.*.%d.bin", book.Process)))
		if len(paths) != 1 {
			t.Fatalf("%s: traces %v of process %d", name, paths, book.Process)
		}
		for name, n := range book.Calls {
			calls[name] += n
		}
		checkBook(t, book, paths[0], filepath.Join(dir, fmt.Sprintf("null.%d.log", book.Process)), killed &&
			name == "book")
	}
	return calls
}

func checkBook(t *testing.T, book ledgerBook, trace, log string, killed bool) {
	t.Helper()
	replay := replayText(t, trace)
	for i, words := range replay.problems {
		if i < 10 {
			t.Errorf("replay: %s", words)
		}
	}
	settled, open := book.settle(t, replay.by)
	if len(open) > 0 && !killed {
		t.Errorf("%d calls were never finished", len(open))
	}
	checkReport(t, book, settled, replay, trace, killed)
	checkDriver(t, settled, open, replay, log)
	if t.Failed() {
		t.Logf("%s: %d events, %d calls cut", filepath.Base(trace), replay.events, len(open))
	}
}

// ledgerLevel is an account in `memtrace report --json`.
type ledgerLevel struct {
	Peak   int64 `json:"peak_bytes"`
	Live   int64 `json:"live_bytes"`
	Allocs int64 `json:"alloc_count"`
	Frees  int64 `json:"free_count"`
	Bytes  int64 `json:"alloc_bytes"`
	Failed int64 `json:"failed_count"`
}

func (l ledgerLevel) figures() figures {
	return figures{l.Allocs, l.Bytes, l.Frees, l.Bytes - l.Live, l.Failed}
}

type ledgerReport struct {
	Lost    int64 `json:"lost_records"`
	Driver  ledgerLevel
	Other   map[string]ledgerLevel `json:"other_memory"`
	Devices []struct {
		Index  int
		Driver ledgerLevel
	}
	Health map[string]any
}

func runJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	text, err := exec.Command(command(t), args...).Output()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("memtrace %v: %v", args, err)
	}
}

// checkReport compares the report: figures, peaks, and that there was nothing to repair.
func checkReport(t *testing.T, book ledgerBook, settled statement, replay *textReplay, trace string, killed bool) {
	t.Helper()
	var r ledgerReport
	runJSON(t, &r, "report", "--json", trace)
	have, want := newStatement(), newStatement()
	for _, d := range r.Devices {
		have.add(ledgerPlace{"driver", d.Index}, d.Driver.figures(), 1)
	}
	for account, level := range r.Other {
		have.add(ledgerPlace{account, -1}, level.figures(), 1)
	}
	have.failedFrees = int64(r.Health["failed_frees"].(float64))
	want.failedFrees = settled.failedFrees
	all := figures{}
	for at, f := range settled.at {
		if at.account == "driver" {
			all = all.plus(f, 1)
			want.add(at, f, 1)
		} else {
			want.add(ledgerPlace{at.account, -1}, f, 1)
		}
	}
	if words := have.differs(want); words != "" {
		t.Errorf("the report against the book:\n%s", words)
	}
	if r.Driver.figures() != all {
		t.Errorf("all devices: the report says %s, the book %s", r.Driver.figures(), all)
	}
	for name, n := range map[string]any{"lost_records": float64(r.Lost), "unmatched_frees": nil, "unmatched_maps": nil,
		"displaced_blocks": nil, "late_frees": nil, "unmatched_references": nil,
		"implausible_sizes": nil, "lost_threads": nil, "lost_dictionary_entries": nil, "runtime_only": nil,
		"unknown_events": nil} {
		if n == nil {
			n = r.Health[name]
		}
		if n != float64(0) {
			t.Errorf("the report's %s: %v", name, n)
		}
	}
	if complete := r.Health["complete"]; complete != true && !killed {
		t.Errorf("the report is not complete: %v", r.Health)
	}
	checkInfo(t, replay, trace)
	checkPeaks(t, book, r, replay)
}

func checkInfo(t *testing.T, replay *textReplay, trace string) {
	t.Helper()
	var info struct {
		Events int
		Lost   map[string]int
	}
	runJSON(t, &info, "info", "--json", trace)
	if info.Events != replay.events || info.Lost["records"]+info.Lost["rings"]+info.Lost["dictionary"] != 0 {
		t.Errorf("info says %d events, lost %v; the dump has %d", info.Events, info.Lost, replay.events)
	}
}

// checkPeaks requires that each peak is between what was certainly live and what may have been, which are equal in a
// serial run, and that both replays agree.
func checkPeaks(t *testing.T, book ledgerBook, r ledgerReport, replay *textReplay) {
	t.Helper()
	devices := map[int]ledgerLevel{}
	for _, d := range r.Devices {
		devices[d.Index] = d.Driver
	}
	for _, p := range book.Peaks {
		have := r.Other[p.Account].Peak
		second := replay.allPeak[p.Account]
		switch {
		case p.Account == "driver" && p.All:
			have = r.Driver.Peak
		case p.Account == "driver" && p.Device >= 0:
			have, second = devices[p.Device].Peak, replay.peak[ledgerPlace{"driver", p.Device}]
		case !p.All:
			continue // reports do not divide the others
		}
		if have < p.Least || have > p.Most || book.Serial && !book.cut() && p.Least != p.Most || have != second {
			t.Errorf("peak of %s, device %d: the report says %d, the dump %d, the book %d to %d", p.Account, p.Device,
				have, second, p.Least, p.Most)
		}
	}
}

// ledgerKinds are the null driver's words for what is in an account. Its log divides by device what occupies one.
var ledgerKinds = map[string]string{"device": "driver", "async": "driver", "vmm": "driver", "array": "driver",
	"sparse": "driver", "module": "driver", "managed": "managed", "host": "host",
	"ipc": "foreign", "multicast": "multicast"}

// poolChunk is the least that a pool of the null driver's takes from the device; the ledger's graphs request less.
const poolChunk = 32 << 20

// checkDriver compares the null driver's log. It has no addresses and no nodes of graphs; their memory, which comes
// with a launch, is left out. Host memory is of one kind there.
func checkDriver(t *testing.T, settled statement, open []statement, replay *textReplay, log string) {
	t.Helper()
	have, want := newStatement(), newStatement()
	opened := map[uint64]int64{}
	segments := map[uint64]bool{} // memory for nodes of graphs: smaller than any chunk of a pool
	for _, line := range driverAccount(t, log) {
		account, known := ledgerKinds[line.Kind]
		if line.Kind == "pool" {
			segments[line.Addr] = line.Op == "alloc" && line.Size < poolChunk
		}
		if !known || line.Kind == "async" && segments[line.Addr] || line.Op == "oom" {
			continue
		}
		at := ledgerPlaceOf(account, line.Device)
		size := int64(line.Size)
		if line.Kind == "sparse" {
			size = 0 // their tiles' handles pay
		}
		if line.Kind == "ipc" {
			opened[line.Addr] = size
		}
		if line.Op == "alloc" {
			have.add(at, figures{Made: 1, MadeBytes: size}, 1)
		} else {
			have.add(at, figures{Ended: 1, EndedBytes: size}, 1)
		}
	}
	// imported, and not mapped before the end: then only the driver knows its size
	for handle := range replay.unsized() {
		have.add(ledgerPlace{"foreign", -1}, figures{Made: 1, MadeBytes: opened[handle]}, -1)
	}
	take := func(into *statement, s statement) {
		for at, f := range s.at {
			f.Refused = 0
			if at.account == "registered" {
				at.account = "host"
			}
			if at.account != "address" && at.account != "graph" {
				into.add(at, f, 1)
			}
		}
	}
	take(&want, settled)
	most := newStatement() // The driver may have done what a killed thread was about to.
	for _, s := range open {
		take(&most, s)
	}
	for _, words := range beyond(have, want, most) {
		t.Errorf("the null driver against the book: %s", words)
	}
}

// beyond returns where a statement has less than another, or more by more than the calls that were cut.
func beyond(have, want, most statement) (words []string) {
	for _, places := range []map[ledgerPlace]figures{have.at, want.at} {
		for at := range places {
			d, m := have.at[at].plus(want.at[at], -1), most.at[at]
			if d.Made < 0 || d.Made > m.Made || d.MadeBytes < 0 || d.MadeBytes > m.MadeBytes || d.Ended < 0 ||
				d.Ended > m.Ended || d.EndedBytes < 0 || d.EndedBytes > m.EndedBytes {
				words = append(words, fmt.Sprintf("%s: %s, against %s; cut %s", at, have.at[at], want.at[at], m))
			}
		}
	}
	return words
}
