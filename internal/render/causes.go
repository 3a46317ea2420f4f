package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const (
	// causePart is the least part of the peak, as a divisor, that makes a cause worth a sentence.
	causePart  = 20
	leastCause = 1 << 20 // bytes
)

// causeFindings say what the program does that takes memory without need. kept is the sentence on what keeps tensors.
func causeFindings(s *report.Summary, v *report.Verdict, kept string) (list []report.Finding) {
	if s.Bounds != nil {
		return nil
	}
	least := max(v.PeakBytes/causePart, leastCause)
	copies, idle := cause.Find(s.Training)
	if len(copies) > 0 && copies[0].Bytes >= least {
		c := &copies[0]
		text := fmt.Sprintf("%s has a second set of the %s of %s: %s.", sanitize.Text(c.Module),
			layout.Plural(uint64(c.Count), "parameter", "parameters"), sanitize.Text(c.Of), layout.Bytes(c.Bytes))
		if more := len(copies) - 1; more > 0 {
			text = strings.TrimSuffix(text, ".") + fmt.Sprintf("; so do %s.", layout.Plural(uint64(more), "more module",
				"more modules"))
		}
		list = append(list, report.NewFinding("parameter-copies", text, c.Bytes, "training.parameters"))
	}
	if f := cause.FamilyOf(s); f != nil && f.Bytes() >= least {
		list = append(list, report.NewFinding("many-alike", familySentence(f), f.Bytes(), "training.parameters"))
	}
	if t := s.Training; t != nil && t.Undifferentiated != nil && t.Undifferentiated.Bytes >= least {
		list = append(list, report.NewFinding("undifferentiated", undifferentiatedSentence(t.Undifferentiated),
			t.Undifferentiated.Bytes, "training.undifferentiated"))
		idle = slices.DeleteFunc(idle, func(i cause.Idle) bool { return i.Gradients == 0 }) // it says the same
	}
	if t := s.Training; t != nil && t.Abandoned != nil && t.Abandoned.Bytes >= least {
		list = append(list, report.NewFinding("abandoned", abandonedSentence(t.Abandoned, s.KeptBy, kept != ""),
			t.Abandoned.Bytes, "training.abandoned"))
	}
	if len(idle) > 0 && idle[0].Activations+idle[0].Gradients >= least {
		list = append(list, report.NewFinding("untrained", untrainedSentence(&idle[0]),
			idle[0].Activations+idle[0].Gradients,
			"training.parameters", "training.modules"))
	}
	return list
}

// familySentence speaks of modules that pile up.
func familySentence(f *cause.Family) string {
	const shown = 3
	name, last := sanitize.Text(f.Name), len(f.Numbers)-1
	others := "the " + layout.Count(uint64(len(f.Others))) + " others like them"
	if len(f.Others) <= shown {
		others += " (" + sanitize.Text(strings.Join(f.Others, ", ")) + ")"
	}
	times := "1"
	if f.OthersMost > 1 {
		times = "at most " + layout.Count(f.OthersMost)
	}
	return fmt.Sprintf("%s modules, %s%d to %s%d, came one after another: %s each, %s in total; of each of %s there is %s.",
		layout.Count(uint64(len(f.Numbers))), name, f.Numbers[0], name, f.Numbers[last], layout.Bytes(f.Each),
		layout.Bytes(f.Bytes()), others, times)
}

// wasteWords says why memory is reserved and unused, and what is known to give it back.
func wasteWords(w *cause.Waste, idle uint64) string {
	if w == nil {
		return ""
	}
	text := ", " + layout.Bytes(w.Bytes) + " of it "
	if layout.Bytes(w.Bytes) == layout.Bytes(idle) {
		text = ", all of it "
	}
	switch w.Why {
	case cause.WastePools:
		text += "in " + layout.Plural(w.Pools, "private pool", "private pools") + ", as CUDA graphs have them"
		if w.Frees >= w.Bytes/2 {
			text += fmt.Sprintf(": one pool for all captures (pool=torch.cuda.graph_pool_handle()), the one that needs most first, gives back about %s",
				layout.Bytes(w.Frees))
		}
	case cause.WasteSegments:
		text += "in segments without any block"
	case cause.WasteGaps:
		text += "in segments that hold blocks, too"
	}
	if w.CouldGrow && w.Frees >= w.Bytes/4 {
		text += ": PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lowers the most that is reserved by about " +
			layout.Bytes(w.Frees)
	}
	return text
}

// Multiples of the batch that are worth saying: less is no news, and more is no batch that anybody would try.
const leastFit, mostFit = 1.2, 64

// fitSentence says how much larger a batch the device has room for: with what the allocator leaves idle, and without.
// Where memory grows, it is no share of a batch.
func fitSentence(s *report.Summary) (text string, bytes uint64) {
	f := cause.FitOf(s)
	if f == nil || len(s.Growing()) > 0 || f.Factor < leastFit || f.Factor > mostFit || f.Scaling < leastCause {
		return "", 0
	}
	times, most := multipleWords(f.Factor), multipleWords(f.Most)
	text = fmt.Sprintf("What grows with the batch holds %s: %%s times this batch would fit", layout.Bytes(f.Scaling))
	if len(s.Devices) > 1 {
		text += " on " + layout.DeviceName(f.Device)
	}
	if times == most {
		return fmt.Sprintf(text, "about "+times) + ".", f.Scaling
	}
	return fmt.Sprintf(text, times) + ", " + most + " with nothing idle.", f.Scaling
}

// multipleWords is a multiple of a batch, rounded down.
func multipleWords(times float64) string {
	if times >= 10 {
		return layout.Count(uint64(times))
	}
	return fmt.Sprintf("%.1f", math.Floor(times*10)/10)
}

// undifferentiatedSentence speaks of forward passes that keep what only a backward pass needs, which never comes.
func undifferentiatedSentence(u *report.Undifferentiated) string {
	them := "them"
	if u.Passes == 1 {
		them = "it"
	}
	return fmt.Sprintf("At the peak, %s: run %s under torch.no_grad().", keptForNothing(u), them)
}

// abandonedSentence speaks of the same where the program's line trains, so that its passes need their graphs. told:
// another sentence names what keeps tensors, of k.
func abandonedSentence(u *report.Undifferentiated, k *report.KeptBy, told bool) string {
	text := fmt.Sprintf("At the peak, %s", keptForNothing(u))
	if u.Site != "" {
		text += ", unlike others of that line"
	}
	switch {
	case told && inTraceback(k, u.Bytes/2):
		return text + ". An exception's traceback has the variables of the calls that it left: keep str(e) instead."
	case told:
		return text + "."
	}
	return text + ": something held what was computed, such as a list of losses, or an exception with its traceback."
}

// inTraceback reports whether a traceback leads to what holds so many bytes.
func inTraceback(k *report.KeptBy, least uint64) bool {
	return slices.ContainsFunc(k.Holders, func(h report.Kept) bool {
		return h.FreesBytes+h.SharedBytes >= least && slices.Contains(strings.Split(h.Types, ", "), "traceback")
	})
}

// keptForNothing says which passes kept how much.
func keptForNothing(u *report.Undifferentiated) string {
	passes := layout.Plural(u.Passes, "forward pass", "forward passes")
	if u.Site != "" {
		passes += " of " + sanitize.Text(u.Site)
	}
	return fmt.Sprintf("%s kept %s for a backward pass that never came", passes, layout.Bytes(u.Bytes))
}

// untrainedSentence speaks of a module that is differentiated, or ready to be, for nothing.
func untrainedSentence(i *cause.Idle) string {
	name := sanitize.Text(i.Module)
	switch {
	case i.Gradients > 0 && i.Activations > 0:
		return fmt.Sprintf("No optimizer has the parameters of %s, yet they have gradients (%s), and its forward pass left %s of activations: "+
			"run it under torch.no_grad(), or call requires_grad_(False) on it.", name, layout.Bytes(i.Gradients),
			layout.Bytes(i.Activations))
	case i.Gradients > 0:
		return fmt.Sprintf("No optimizer has the parameters of %s, yet they have gradients (%s): call requires_grad_(False) on it, "+
			"or run it under torch.no_grad().", name, layout.Bytes(i.Gradients))
	}
	return fmt.Sprintf("No optimizer has the parameters of %s, and its forward pass left %s of activations at the peak: "+
		"unless something is trained through it, run it under torch.no_grad().", name, layout.Bytes(i.Activations))
}
