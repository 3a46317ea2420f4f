package rewrite

import (
	"path"
	"slices"
	"strings"

	"memtrace/trace"
)

// Strip leaves out the environment, the working directory, arguments, the host's name, symbols and line tables,
// and shortens paths.
type Strip struct {
	KeepSymbols bool // symbols stay, their source files shortened
	KeepLines   bool // Python's line tables stay
	Counts      Counts
}

func (s *Strip) count(what string) {
	if s.Counts == nil {
		s.Counts = make(Counts)
	}
	s.Counts[what]++
}

// changed counts a text that is not what it was.
func (s *Strip) changed(what, old, edited string) string {
	if old != edited {
		s.count(what)
	}
	return edited
}

// harmless lists facts about the run that reveal nothing about its user: numbers, versions and memtrace's own words.
var harmless = []string{"format.writer", "process.pid", "process.start_unix_ns", "process.ended", trace.ExitStatusKey,
	trace.SignalKey, "process.numbers", "process.in_flight", "process.lost_threads", "process.lost_dictionary",
	"trace.altered", "clock.base_unix_ns", "clock.source", "cuda.driver_version", "cuda.runtime_version",
	"framework.torch", "framework.mxnet", "python.version", "python.eval", "library.version", "nullgpu", trace.StartKey,
	trace.LimitKey}

// sentences lists facts that are memtrace's sentences; they may contain a path.
var sentences = []string{"drain", "blind", "nvtx", "nvml", "nvml.share", "nvml.list", "nvml.slice", "nvml.device",
	"nvml.exit", "python.stacks", "python.selftest"}

// unhooked precedes the names of calls that the program requested in a version unknown to the recorder.
const unhooked = "unhooked."

// Info implements trace.Editor.
func (s *Strip) Info(key, value string) (edited string, keep bool) {
	switch {
	case slices.Contains(harmless, key), slices.Contains(trace.ThinnedKeys(), key), strings.HasPrefix(key, unhooked):
		return value, true
	case slices.Contains(sentences, key):
		return s.changed(CountInfo, value, shortText(value)), true
	case key == "process.exe":
		return s.changed(CountInfo, value, path.Base(value)), true
	case key == "process.argv":
		return s.changed(CountInfo, value, strings.Join(program(strings.Split(value, "\x00")), "\x00")), true
	case key == "process.command":
		return s.changed(CountInfo, value, strings.Join(program(strings.Split(value, " ")), " ")), true
	}
	s.count(CountInfo)
	return "", false
}

// program is what is left of a command line: the program's name, and -c where there was one, since reports then take
// code without a file for the user's.
func program(args []string) []string {
	if len(args) == 0 || args[0] == "" {
		return nil
	}
	left := []string{path.Base(args[0])}
	if slices.Contains(args[1:], "-c") {
		left = append(left, "-c")
	}
	return left
}

// String implements trace.Editor.
func (s *Strip) String(text string) string { return text }

// Module implements trace.Editor.
func (s *Strip) Module(m trace.Module) trace.Module {
	m.Path = s.changed(CountPaths, m.Path, shortModule(m.Path))
	return m
}

// Thread implements trace.Editor.
func (s *Strip) Thread(th trace.Thread) trace.Thread { return th }

// Device implements trace.Editor.
func (s *Strip) Device(d trace.Device) trace.Device { return d }

// Code implements trace.Editor.
func (s *Strip) Code(c trace.Code) trace.Code {
	c.File = s.changed(CountPaths, c.File, shortFile(c.File))
	if !s.KeepLines && c.Table != trace.LinesNone {
		s.count(CountLines)
		c.Table, c.Lines = trace.LinesNone, nil
	}
	return c
}

// Symbol implements trace.Editor.
func (s *Strip) Symbol(y trace.Symbol) (edited trace.Symbol, keep bool) {
	if !s.KeepSymbols {
		s.count(CountSymbols)
		return y, false
	}
	for i := range y.Frames {
		f := &y.Frames[i]
		f.File = s.changed(CountPaths, f.File, lastParts(f.File, 2))
	}
	return y, true
}

// End implements trace.Editor.
func (s *Strip) End(e trace.End) trace.End {
	e.Reason = shortText(e.Reason)
	return e
}

// OOM implements trace.Editor.
func (s *Strip) OOM(report string) (edited string, keep bool) {
	s.count(CountReports)
	return editReport(report, func(at reportPlace, text string) (string, bool) {
		switch at.key {
		case "host", "cwd":
			return "", true
		case "exe":
			return path.Base(text), true
		case "command":
			return strings.Join(program(strings.Split(text, " ")), " "), true
		case "args":
			left := program([]string{text})
			return strings.Join(left, ""), at.index == 0 || text == "-c"
		}
		if at.key == "tag" || at.key == "key" && at.by == "tag" {
			return text, true
		}
		return shortText(text), true
	})
}
