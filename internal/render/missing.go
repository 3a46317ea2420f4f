package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// noParameters explains why there are no names: the three reasons have different remedies.
func noParameters(s *report.Summary) string {
	if len(s.Training.Parameters) > 0 {
		return ""
	}
	return "the trace has no names of parameters: " + unnamed(s)
}

func noModules(s *report.Summary) string {
	switch {
	case s.Training.Modules != nil:
		return ""
	case len(s.Training.Parameters) > 0 && len(s.Filter) == 0:
		return "the trace has names of parameters, but none of modules, which only PyTorch's modules have; --view parameters shows the former"
	}
	return "the trace has no names of modules: " + unnamed(s)
}

// unnamed explains a trace in which nothing has a name.
func unnamed(s *report.Summary) string {
	key := ""
	for _, framework := range []string{"torch", "mxnet"} {
		if key == "" && (s.Versions[framework] != "" || s.Training.Adapters[framework] != "") {
			key = framework
		}
	}
	switch {
	case len(s.Filter) > 0:
		return "nothing that passes the filters (" + sanitize.Text(strings.Join(s.Filter, ", ")) + ") has one"
	case key != "":
	case s.Framework.Empty() && s.Driver.Empty():
		return "the program made no CUDA memory call"
	default:
		return "neither PyTorch nor MXNet was seen in the program; names come from them, under Python"
	}
	name := layout.FrameworkName(s.Versions)
	switch state := s.Training.Adapters[key]; state {
	case "":
		return fmt.Sprintf(
			"the recorder read none from %s, because MEMTRACE_ADAPTERS excludes it, no Python runs in the program, or the trace is older than names; record again with MEMTRACE_ADAPTERS unset", name)
	case "on":
		return fmt.Sprintf("%s reported no model with memory on a GPU", name)
	default:
		return fmt.Sprintf("the recorder could not read them from %s (%s)", name, sanitize.Text(state))
	}
}

func noIterations(s *report.Summary) string {
	if len(s.Training.Iterations) > 0 {
		return ""
	}
	return "nothing was allocated, so there are no iterations"
}

// Absent names ranks without a trace or with several processes, and files that are not compared.
func Absent(r *diff.Ranks) (list []string) {
	if len(r.Twice) > 0 {
		list = append(list, fmt.Sprintf("Several processes have the same rank: %s.", layout.RankWords(r.Twice)))
	}
	if len(r.Missing) > 0 {
		list = append(list, fmt.Sprintf("Of %d ranks, %s %s missing: no trace of theirs was read.",
			r.Processes[0].Head.Summary.Process.WorldSize, layout.RankWords(r.Missing), layout.IsAre(len(r.Missing))))
	}
	return append(list, LeftOut(r)...)
}

// LeftOut names the files that are not compared.
func LeftOut(r *diff.Ranks) (list []string) {
	for _, why := range []struct {
		text  string
		files []diff.RankProcess
	}{{"Not of this run", r.Others}, {"Of a process that another file is of", r.Again}} {
		var paths []string
		for _, p := range why.files {
			paths = append(paths, sanitize.Text(p.Path))
		}
		if len(paths) > 0 {
			list = append(list, fmt.Sprintf("%s, and left out, %s %s.", why.text, layout.IsAre(len(paths)),
				some(paths)))
		}
	}
	return list
}
