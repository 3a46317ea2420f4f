package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// operatorWords names an operator, or the kernel that several were compiled to.
func operatorWords(name string) string {
	if compiled, is := strings.CutPrefix(name, report.CompiledPrefix); is {
		return "compiled code for " + sanitize.Text(compiled)
	}
	return "operator " + sanitize.Text(name)
}

// operatorShare is the least part of the memory that makes an operator worth a sentence.
const operatorShare = 0.25

// partWords names the part of the model that held most, including its children, and the operator if one is prominent in
// it; "" if nothing is known.
func partWords(v *report.Verdict) string {
	switch m, o := v.Module, v.Operator; {
	case v.Function != nil:
		return fmt.Sprintf("%.0f%% was allocated in %s and what it calls (%s)", 100*v.Function.Share,
			sanitize.Text(v.Function.Name), layout.Bytes(v.Function.Bytes))
	case m != nil:
		text := fmt.Sprintf("%.0f%% was in module %s", 100*m.Share, sanitize.Text(m.Name))
		if m.Deep {
			text += " and its submodules"
		}
		text += fmt.Sprintf(" (%s)", layout.Bytes(m.Bytes))
		if namesOperator(v) {
			text += fmt.Sprintf(", %.0f%% came from %s", 100*o.Share, operatorWords(o.Name))
		}
		return text
	case namesOperator(v):
		if o.Share == 1 {
			return "all of it came from " + operatorWords(o.Name)
		}
		return fmt.Sprintf("%.0f%% came from %s (%s)", 100*o.Share, operatorWords(o.Name),
			layout.Bytes(o.Bytes))
	}
	return ""
}

// namesOperator reports whether one operator holds enough to be named. With a module it is only named if the program's
// own lines are too few to show what the module does; without one, if no category holds more, which tells more.
func namesOperator(v *report.Verdict) bool {
	switch o := v.Operator; {
	case o == nil || o.Share < operatorShare:
		return false
	case v.Module != nil:
		return v.Owner != nil && v.Owner.By == "inner"
	}
	return v.Category == nil || v.Operator.Share >= v.Category.Share
}

// loadedSentence reports a checkpoint that was on the device twice at the peak, if that is much.
func loadedSentence(s *report.Summary, v *report.Verdict) string {
	if v.Outcome != report.OutcomePeak || s.LoadedTwiceBytes == 0 || s.LoadedTwiceBytes < v.PeakBytes/10 {
		return ""
	}
	return fmt.Sprintf(
		"%s of it were read from a checkpoint and were on the device twice; torch.load with map_location=\"cpu\" avoids that.", layout.Bytes(s.LoadedTwiceBytes))
}

// copiesSentence reports what is as large as all parameters, if that is much.
func copiesSentence(s *report.Summary, v *report.Verdict) (text string, bytes uint64) {
	c := s.ParameterCopies
	if v.Outcome != report.OutcomePeak || c == nil || c.Bytes < v.PeakBytes/10 {
		return "", 0
	}
	size := "as large as all parameters"
	if c.Count > 1 {
		size = fmt.Sprintf("%d times as large as all parameters", c.Count)
	}
	return fmt.Sprintf("%s of it, from %s, are %s: a copy of them, such as best weights, a moving average or a second model.",
		layout.Bytes(c.Bytes), sanitize.Text(c.Site), size), c.Bytes
}

// engineSentence describes how to get more detail of an MXNet program whose blocks come from the threads of MXNet's
// engine.
func engineSentence(s *report.Summary, v *report.Verdict) string {
	if s.Versions["mxnet"] == "" || v.Module != nil || v.Owner == nil || v.Owner.By != "library" ||
		!strings.HasPrefix(v.Owner.Name, "libmxnet") {
		return ""
	}
	return "MXNet allocates in threads of its engine, where call stacks have no line of the program; a run with MXNET_ENGINE_TYPE=NaiveEngine shows lines and modules."
}
