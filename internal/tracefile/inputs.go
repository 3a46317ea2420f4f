// Package tracefile reads the traces that a command line names: which files an argument expands to, how they are
// opened, several at a time, and the messages on those that cannot be read. It defines no flag.
package tracefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/runprofile"
	"memtrace/internal/safefile"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// Suffix ends the name of a trace.
const Suffix = ".bin"

// Input is one trace to read.
type Input struct {
	Path       string
	FromFolder bool // found in a folder that the user named: another program's *.bin may be passed over
}

// Expand turns arguments into traces, in order: a file is itself, a folder for the traces, left-over spools and
// profiles in it. What belongs to a trace of the list is dropped.
func Expand(args []string) ([]Input, error) {
	var inputs []Input
	for _, arg := range args {
		found, err := ExpandArg(arg)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return withoutParts(inputs), nil
}

// ExpandFolder lists what Expand lists of a folder, and the files whose names end with one of also.
func ExpandFolder(folder string, also ...string) ([]Input, error) {
	inputs, err := expandFolder(folder, also...)
	return withoutParts(inputs), err
}

// withoutParts drops what lies beside a trace that is listed and belongs to it: its spool, which is read with it, its
// profile and its texts of running out of memory. A shell lists them for a pattern such as run/*.
func withoutParts(inputs []Input) []Input {
	listed := make(map[string]bool, len(inputs))
	for _, in := range inputs {
		listed[filepath.Clean(in.Path)] = true
	}
	return slices.DeleteFunc(inputs, func(in Input) bool {
		path := filepath.Clean(in.Path)
		if of, isSpool := strings.CutSuffix(path, spool.Extension); isSpool {
			return listed[of]
		}
		if of, isProfile := strings.CutSuffix(path, runprofile.Suffix); isProfile {
			return listed[of+Suffix]
		}
		of := oomText.FindStringSubmatch(path)
		return of != nil && listed[of[1]]
	})
}

// oomText is what texts of running out of memory are called, as the recorder writes them: TRACE.oom.1.txt.
var oomText = regexp.MustCompile(`^(.+)\.oom\.[0-9]+\.(?:txt|json)$`)

var errStandardInput = errors.New("-: standard input cannot be read more than once; name a file")

// ExpandArg expands one argument, as Expand does, but keeps the spools whose traces are listed too.
func ExpandArg(arg string) ([]Input, error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && arg == "-":
		return nil, errStandardInput
	case errors.Is(err, fs.ErrNotExist):
		// A process that was killed before its first flush leaves only the spool.
		if _, spoolErr := os.Stat(arg + spool.Extension); spoolErr == nil {
			return []Input{{Path: arg + spool.Extension}}, nil
		}
		return nil, fmt.Errorf("%s: no such file or folder; 'memtrace run' prints the name of the trace that it wrote",
			arg)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", arg, errors.Unwrap(err))
	case !info.IsDir():
		return []Input{{Path: arg}}, nil
	}
	return expandFolder(arg)
}

// expandFolder lists the traces, spools and profiles of a folder, without the profiles of traces in it, and the files
// whose names end with one of also.
func expandFolder(folder string, also ...string) ([]Input, error) {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	names := make(map[string]bool, len(entries))
	for _, entry := range entries {
		names[entry.Name()] = true
	}
	var inputs []Input
	for _, entry := range entries {
		name := entry.Name()
		of, isProfile := strings.CutSuffix(name, runprofile.Suffix)
		if entry.IsDir() || isProfile && names[of+Suffix] ||
			!isProfile && !slices.ContainsFunc(append(also, Suffix, spool.Extension),
				func(end string) bool { return strings.HasSuffix(name, end) }) {
			continue
		}
		inputs = append(inputs, Input{Path: filepath.Join(folder, name), FromFolder: true})
	}
	if len(inputs) == 0 {
		return nil, NoTraceError(folder)
	}
	return inputs, nil
}

// PassOver reports, and logs, that what was found in a folder is not a trace of the user's: another program's file, or
// what is not a file at all.
func PassOver(c *cli.Console, in Input, err error) bool {
	switch {
	case !in.FromFolder:
		return false
	case errors.Is(err, trace.ErrNotTrace):
		c.Log.Info().Msgf("%s is passed over: %v", in.Path, trace.ErrNotTrace)
	case errors.Is(err, safefile.ErrNotRegular):
		c.Log.Warn().Msgf("%v; it is passed over", err)
	default:
		return false
	}
	return true
}

// Again reports whether a file is of a process that one was seen of before, and says so: a process counts once.
func Again(c *cli.Console, seen *report.Recordings, path string, p *report.Process) bool {
	first := seen.Seen(path, p)
	if first != "" {
		c.Log.Warn().Msgf("%s is of the same process as %s, and is left out", path, first)
	}
	return first != ""
}

// NoTraceError returns the error for a folder that holds no trace. It names a file that is called like one.
func NoTraceError(folder string) error {
	const record = "record one with: memtrace run -- PROGRAM"
	entries, _ := os.ReadDir(folder) // none where it cannot be read
	names := slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() || !strings.HasSuffix(e.Name(), Suffix)
	})
	switch len(names) {
	case 0:
		return fmt.Errorf("%s: no trace in this folder (*%s, *%s, *%s); %s", folder, Suffix, spool.Extension,
			runprofile.Suffix, record)
	case 1:
		return fmt.Errorf("%s: no trace in this folder: %s is another program's file; %s", folder, names[0].Name(),
			record)
	}
	return fmt.Errorf("%s: no trace in this folder: %s and %d more are files of other programs; %s", folder,
		names[0].Name(), len(names)-1, record)
}

// One is for verbs whose argument is exactly one trace: a folder is accepted if it holds one trace.
func One(arg string) (string, error) {
	inputs, err := Expand([]string{arg})
	if err != nil {
		return "", err
	}
	if len(inputs) != 1 {
		return "", fmt.Errorf("%s: holds %d traces; name one of them, such as %s", arg, len(inputs), inputs[0].Path)
	}
	return inputs[0].Path, nil
}
