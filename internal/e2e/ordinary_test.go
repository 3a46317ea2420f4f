//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ordinary is one way to run one of the cases of ordinary.py: the interpreter's options, and how the program ends.
type ordinary struct {
	name   string // of the case
	flags  []string
	env    []string
	status int
	mxnet  int  // status where it is MXNet's own doing, if not 0
	short  bool // also where only a selection runs
	long   bool // only in nightly runs: rare, or other tests and other cases do much the same
}

func (o ordinary) String() string {
	return strings.Join(append(append([]string{o.name}, o.flags...), o.env...), " ")
}

// ordinaries are the cases that need more than their name, beside those of ordinary.py that end with status 0 and run
// at every change.
var ordinaries = []ordinary{
	{name: "plain", short: true},
	{name: "plain", flags: []string{"-X", "dev"}},
	{name: "plain", flags: []string{"-W", "error::ResourceWarning"}, long: true},
	{name: "plain", flags: []string{"-OO"}, long: true},
	{name: "plain", flags: []string{"-I"}, long: true},
	{name: "plain", env: []string{"PYTHONMALLOC=debug"}, long: true},
	{name: "plain", env: []string{"PYTHONMALLOC=malloc"}, long: true},
	{name: "plain", env: []string{"PYTHONTRACEMALLOC=5"}, long: true},
	{name: "plain", env: []string{"PYTHONHASHSEED=1", "PYTHONUNBUFFERED=1"}, long: true},
	{name: "crash", status: -1, mxnet: 255, short: true}, // by its handler of signals: see tries
	{name: "abort", status: -1},
	{name: "interrupt", status: -1, long: true},
	{name: "quick_end", status: 7, long: true},
	{name: "ended_by_exit", status: 3, long: true},
	{name: "last_words", status: 1},
	{name: "excepthook", status: 1, long: true},
	{name: "subinterpreter", short: true},
	{name: "referrers"},
	{name: "profile_function"},
	{name: "exhausted"},
	{name: "hooks", short: true},
	{name: "alarms", long: true},
	{name: "async_debug", long: true},
	{name: "collector_debugging", long: true},
	{name: "collector_frozen", long: true},
	{name: "compiled", long: true},
	{name: "contexts", long: true},
	{name: "copied", long: true},
	{name: "daemon_threads", long: true},
	{name: "deep", long: true},
	{name: "loader_fork", long: true},
	{name: "loader_forkserver", long: true},
	{name: "loader_spawn", long: true},
	{name: "scripted", long: true},
	{name: "statistics", long: true},
	{name: "strict_warnings", long: true},
	{name: "trace_function", long: true},
}

// ordinariesOf lists the ways for a framework: most of them, or where others are tried as well, a selection.
// ORDINARY=all, for nightly runs, has every one everywhere.
func ordinariesOf(t *testing.T, framework string, most, all bool) (list []ordinary) {
	t.Helper()
	r := program{framework: framework, args: []string{"ordinary.py", ordinaryName(framework)}, plain: true}.record(t)
	names := strings.Fields(r.stdout)
	for _, o := range ordinaries {
		has := slices.Contains(names, o.name)
		if !has && framework != mxnet {
			t.Errorf("ordinary.py has no case %s", o.name)
		}
		if has && (all || o.short || most && !o.long) {
			list = append(list, o)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(ordinaries, func(o ordinary) bool { return o.name == name })
	})
	switch {
	case all:
		for _, name := range names {
			list = append(list, ordinary{name: name})
		}
	case most: // in one process that forks, which is faster by an import of the framework each
		list = append(list, ordinary{name: strings.Join(names, " ")})
	}
	return list
}

func ordinaryName(framework string) string {
	if framework == mxnet {
		return "mxnet"
	}
	return "torch"
}

// What programs in Python do beside training they do with the library as without it: standard output, standard error
// and exit status are the same, but for addresses.
func TestOrdinaryPrograms(t *testing.T) {
	t.Parallel()
	extended(t)
	all := os.Getenv("ORDINARY") == "all"
	for _, c := range []struct {
		combination
		most bool
	}{{combination{torch27, ""}, true}, {combination{torch215, ""}, false},
		{combination{mxnet, ""}, false}} {
		t.Run(c.framework, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"greenlet", "gevent"} {
				needPackage(t, c.combination, name)
			}
			for _, o := range ordinariesOf(t, c.framework, c.most, all) {
				t.Run(o.String(), func(t *testing.T) {
					t.Parallel()
					o.compare(t, c.combination)
				})
			}
		})
	}
}

// tries is how often a program may be run until it ends as it should. MXNet's signal handler calls exit, which joins
// MXNet's threads. Of 100 such runs without the library, 3 broke there: a thread that ends finds its arena of malloc
// damaged, and either aborts, or gets into the handler once more and waits for the arena's lock forever.
func (o ordinary) tries(framework string) int {
	if o.name == "crash" && framework == mxnet {
		return 6
	}
	return 1
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// compare runs the case without the library and with it.
func (o ordinary) compare(t *testing.T, c combination) {
	t.Helper()
	want := o.status
	if c.framework == mxnet && o.mxnet != 0 {
		want = o.mxnet
	}
	until := func(plain bool) (got outcome) {
		for try := range o.tries(c.framework) {
			if got = o.run(t, c, plain); got.status == want {
				break
			}
			t.Logf("try %d: exit status %d:\n%s", try+1, got.status, got.stderr)
		}
		return got
	}
	without, with := until(true), until(false)
	// the first one in a new environment compiles modules, and prints the compiler's warnings
	if without != with {
		without = until(true)
	}
	if text := without.difference(with); text != "" {
		t.Errorf("with the library it is unlike without it:%s", text)
	}
	if with.status != want {
		t.Errorf("exit status %d, want %d:\n%s", with.status, want, with.stderr)
	}
}

// withTimeout returns the command as timeout runs it, far longer than it takes.
func withTimeout(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	timed := exec.Command("timeout", append([]string{"--signal=KILL", "600"}, cmd.Args...)...)
	timed.Dir, timed.Env = cmd.Dir, cmd.Env
	return timed
}

// run runs the case once. A flag precedes the script, which nullcuda-run gets as its second argument.
func (o ordinary) run(t *testing.T, c combination, plain bool) outcome {
	t.Helper()
	p := program{framework: c.framework, python: c.python,
		args:  append([]string{"ordinary.py", ordinaryName(c.framework)}, strings.Fields(o.name)...),
		flags: o.flags, env: append(slices.Clone(o.env), "MEMTRACE_OUTPUT=DIR/%p.bin"), plain: plain,
		mayFail: true}
	if plain {
		p.env = append(slices.Clip(p.env), "ORDINARY_LINGER=0") // no scans to wait for
	}
	var got outcome
	var r *result
	if o.tries(c.framework) > 1 { // one that hangs is tried again
		var cmd *exec.Cmd
		cmd, r = p.start(t)
		got = runOne(t, withTimeout(t, cmd))
	} else {
		r = p.record(t)
		got = outcome{r.status, r.stdout, r.stderr}
	}
	got.stdout, got.stderr = address.ReplaceAllString(got.stdout, "ADDRESS"),
		address.ReplaceAllString(got.stderr, "ADDRESS")
	if plain {
		return got
	}
	traces, err := filepath.Glob(filepath.Join(r.dir, "*.bin"))
	if err != nil || len(traces) < len(strings.Fields(o.name)) {
		t.Errorf("%d traces: %v", len(traces), err)
	}
	for _, path := range traces {
		if _, reader := readEvents(t, path); reader.Info()["adapter."+ordinaryName(c.framework)+".trouble"] != "" {
			t.Errorf("trouble: %v", reader.Info())
		}
	}
	return got
}
