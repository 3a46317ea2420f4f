package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// entry is a paragraph of a man page's list: a term and what it means.
type entry struct{ term, text string }

// exitStatuses lists the exit statuses of a verb.
func exitStatuses(c *cobra.Command) []entry {
	switch c.Name() {
	case "run":
		return []entry{{"0-255",
			"that of the program, as a shell reports it: 128 plus the number of a signal that ended it"},
			{"1, 2", "with --check, of a program that exited with status 0: over the budget, or not checked"},
			{"2", "wrong usage, before the program was started"},
			{"126, 127", "the program cannot be run, or was not found"}}
	case "check":
		return []entry{{"0", "every gate passed"}, {"1", "a gate failed: memory is over the budget"},
			{"2", "wrong usage, or a trace that cannot be read or is not complete"}}
	case "diff":
		return []entry{{"0", "both traces were read, whether they differ or not, unless --fail-on is given"},
			{"1", "a figure grew by more than --fail-on allows"},
			{"2", "wrong usage, a file that cannot be read, or with --fail-on one that is not complete"}}
	}
	return []entry{{"0", "success; also where the trace is incomplete, unless --strict is given"},
		{"2", "wrong usage, or a file that cannot be read or written"}}
}

// recorderVariables are what the library reads, in short; docs/environment.md has all of it.
var recorderVariables = []entry{
	{"MEMTRACE_OUTPUT", "name of the trace, with placeholders such as %p; memtrace.%e.%p.bin by default"},
	{"MEMTRACE_FORCE", "replace a trace that exists"},
	{"MEMTRACE_LOG", "what the recorder logs to standard error: off, error, warn, info or debug"},
	{"MEMTRACE_START", "asleep: record nothing until 'memtrace ctl PID start'"},
	{"MEMTRACE_CONTROL", "0: no control socket"},
	{"MEMTRACE_CONTROL_DIR", "folder of control sockets, /tmp/memtrace-UID by default: 'memtrace top' shows owners of those processes"},
	{"MEMTRACE_DISABLE", "load the library and record nothing"},
	{"MEMTRACE_SPOOL_DIR", "folder of the spool, the working file of a running process"},
	{"MEMTRACE_TRACE_MAX", "largest size of the trace, such as 2G: its older part is compacted before that"},
	{"MEMTRACE_SPOOL_MAX, MEMTRACE_SPOOL_HARD_MAX", "usual and largest size of the spool"},
	{"MEMTRACE_OVERFLOW", "what happens when the spool cannot grow any further: wait or drop"},
	{"MEMTRACE_NVML", "whether, and how often in seconds, the device's memory use is queried"},
	{"MEMTRACE_OOM", "whether a text is written when memory runs out: 1, all or 0"},
	{"MEMTRACE_GUEST_MEMORY", "memory for tracking live blocks"},
	{"MEMTRACE_STACKS", "frames of the call stacks, such as native:64,python:128"},
	{"MEMTRACE_ADAPTERS", "frameworks whose names are recorded: torch, mxnet, jax or none"},
	{"MEMTRACE_EMBED_SYMBOLS", "write the names of functions into the trace"},
	{"MEMTRACE_REFERRERS", "milliseconds to find what keeps tensors alive, out of memory or growing; 0: none"},
	{"MEMTRACE_NVTX", "record NVTX ranges as tags"},
	{"MEMTRACE_RUN_DIR", "set by memtrace run; not meant to be set by hand"},
}

// commandVariables are what the command itself reads.
var commandVariables = []entry{
	{"MEMTRACE_OWN", "globs of files that are the program's own code, separated by colons, as with --own"},
	{"MEMTRACE_PROFILE", "write the profile of each trace at the end of 'memtrace run', as with --profile"},
	{"MEMTRACE_LIBRARY", "the library that 'memtrace run' preloads, if not the one beside the command"},
	{"MEMTRACE_PUSH_TOKEN", "token that 'memtrace export --push' sends"},
	{"XDG_CACHE_HOME", "folder of caches, ~/.cache by default"},
	{"NO_COLOR", "print without colors"},
}

// checkVariables are those of GitHub's runner that check reads.
var checkVariables = []entry{
	{"GITHUB_ACTIONS", "true: print failures as annotations, and add them to the job's summary"},
	{"GITHUB_STEP_SUMMARY", "the file of that summary"},
	{"GITHUB_WORKSPACE", "the folder from which annotations name source files"},
}

// variables are the environment of a verb.
func variables(c *cobra.Command) []entry {
	if c.Name() == "run" || c.Name() == "memtrace" || c.Name() == "demo" {
		return append(append([]entry(nil), recorderVariables...), commandVariables...)
	}
	if c.Name() == "check" {
		return append(append([]entry(nil), commandVariables...), checkVariables...)
	}
	return commandVariables
}

var manFiles = []entry{
	{"memtrace.PROGRAM.PID.bin", "trace of one process, in the folder in which it started"},
	{"memtrace.PROGRAM.PID.bin.spool", "spool of a process that runs, or that was killed; read like a trace"},
	{"memtrace.PROGRAM.PID.bin.oom.N.txt, .json", "what filled the device when memory ran out"},
}

// manSections are the sections that a man page has beside those of the flags, as roff.
func manSections(c *cobra.Command) string {
	var b strings.Builder
	for _, section := range []struct {
		title   string
		entries []entry
	}{{"EXIT STATUS", exitStatuses(c)}, {"ENVIRONMENT", variables(c)}, {"FILES", manFiles}} {
		fmt.Fprintf(&b, ".SH %s\n", section.title)
		for _, e := range section.entries {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(e.term), roff(e.text))
		}
	}
	return b.String()
}

// roff escapes what the formatter would take for a command or a hyphen.
func roff(text string) string { return strings.NewReplacer(`\`, `\\`, "-", `\-`).Replace(text) }
