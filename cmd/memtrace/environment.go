package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// defaultOutput is the recorder's own default file name, used here when -o names a folder.
const defaultOutput = "memtrace.%e.%p.bin"

// outputPlaceholders are the letters that may follow a percent sign in an output pattern; %q{NAME} is checked apart.
const outputPlaceholders = "pehtrn%"

// guestSettings are the recorder's settings that run has flags for. A zero value leaves the variable as the user's
// environment has it.
type guestSettings struct {
	library     string // absolute path
	runDir      string
	output      string // absolute pattern
	spoolDir    string // absolute path
	spoolMax    int64  // bytes
	hardMax     int64  // bytes
	traceMax    int64  // bytes
	overflow    string // wait or drop
	guestMemory string // a size, or 0
	log         string
	stacks      string
	force       bool
}

// apply returns base with the recorder preloaded and its settings in place. Of a variable that base names twice only
// the new value remains.
func (g guestSettings) apply(base []string) []string {
	env := slices.Clone(base)
	env = setVariable(env, "LD_PRELOAD", prependPreload(lookupVariable(env, "LD_PRELOAD"), g.library))
	env = setVariable(env, manifestEnv, g.runDir)
	if g.output != "" {
		env = setVariable(env, "MEMTRACE_OUTPUT", g.output)
	}
	if g.spoolDir != "" {
		env = setVariable(env, "MEMTRACE_SPOOL_DIR", g.spoolDir)
	}
	if g.spoolMax > 0 {
		env = setVariable(env, "MEMTRACE_SPOOL_MAX", strconv.FormatInt(g.spoolMax, 10))
	}
	if g.hardMax > 0 {
		env = setVariable(env, "MEMTRACE_SPOOL_HARD_MAX", strconv.FormatInt(g.hardMax, 10))
	}
	if g.traceMax > 0 {
		env = setVariable(env, "MEMTRACE_TRACE_MAX", strconv.FormatInt(g.traceMax, 10))
	}
	if g.overflow != "" {
		env = setVariable(env, "MEMTRACE_OVERFLOW", g.overflow)
	}
	if g.guestMemory != "" {
		env = setVariable(env, "MEMTRACE_GUEST_MEMORY", g.guestMemory)
	}
	if g.log != "" {
		env = setVariable(env, "MEMTRACE_LOG", g.log)
	}
	if g.stacks != "" {
		env = setVariable(env, "MEMTRACE_STACKS", g.stacks)
	}
	if g.force {
		env = setVariable(env, "MEMTRACE_FORCE", "1")
	}
	return env
}

// prependPreload puts the recorder in front, where it sees a call before any other preloaded library, and nowhere else
// in the list.
func prependPreload(existing, library string) string {
	others := strings.FieldsFunc(existing, func(r rune) bool { return r == ':' || r == ' ' })
	others = slices.DeleteFunc(others, func(path string) bool { return filepath.Base(path) == libraryName })
	return strings.Join(append([]string{library}, others...), ":")
}

// checkStacks checks a list that the recorder would read from MEMTRACE_STACKS.
func checkStacks(list string) error {
	if list == "" {
		return nil
	}
	for word := range strings.SplitSeq(list, ",") {
		name, digits, counted := strings.Cut(word, ":")
		_, err := strconv.ParseUint(digits, 10, 16)
		switch {
		case !counted && (name == "full" || name == "none" || name == "nofrees"):
		case counted && (name == "native" || name == "python") && err == nil:
		default:
			return usagef("--stacks %s: choose full, none, or a list such as native:32,python:64,nofrees", list)
		}
	}
	return nil
}

func lookupVariable(env []string, name string) string {
	for _, line := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

func setVariable(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(line string) bool { return strings.HasPrefix(line, name+"=") })
	return append(env, name+"="+value)
}

// outputPattern checks a pattern of -o and makes it absolute, so that it means the same after the program has changed
// its folder. Without placeholders the pattern is one file, which must not exist unless it may be replaced.
func outputPattern(pattern string, force bool) (string, error) {
	if err := checkPattern(pattern); err != nil {
		return "", err
	}
	info, statErr := os.Stat(pattern)
	if strings.HasSuffix(pattern, "/") || statErr == nil && info.IsDir() {
		pattern = filepath.Join(pattern, defaultOutput)
	} else if statErr == nil && !strings.Contains(pattern, "%") && !force {
		return "", fmt.Errorf("%s exists; use -f to replace it, or name another file with -o", pattern)
	}
	if filepath.IsAbs(pattern) {
		return pattern, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("output %s: %w", pattern, err)
	}
	return filepath.Join(strings.ReplaceAll(here, "%", "%%"), pattern), nil // a percent sign in the folder's own name is no placeholder
}

func checkPattern(pattern string) error {
	for rest := pattern; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return nil
		}
		rest = rest[at+1:]
		switch {
		case strings.HasPrefix(rest, "q{") && strings.IndexByte(rest, '}') > len("q{"):
			rest = rest[strings.IndexByte(rest, '}')+1:]
		case rest != "" && strings.IndexByte(outputPlaceholders, rest[0]) >= 0:
			rest = rest[1:]
		default:
			return usagef("output pattern %q: a %% is followed by p (pid), e (program), h (host), t (start time), r (rank), n (counter), q{VARIABLE} or another %%", pattern)
		}
	}
}
