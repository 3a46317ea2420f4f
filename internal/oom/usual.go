package oom

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// usual is how much the latest iterations had at their highest, beyond what was there when they began. Inside of the
// program nobody knows more of them; a report goes by activations, see longerInput.
type usual struct {
	devices map[int16]*iterationsOn
	refused map[uint64]comparedWith // by order number of the refusal
	named   bool                    // the program names its steps; those of its optimizers do not count
}

// iterationsOn is usual on one device.
type iterationsOn struct {
	now, begin, highest uint64   // bytes in blocks: now, when the running iteration began, since then
	begun               bool     // an iteration
	made                []uint64 // by the latest iterations
}

// comparedWith is a refusal's iteration among those before.
type comparedWith struct{ now, most, count uint64 }

// maxUsual is how many iterations are remembered.
const maxUsual = 16

// event is to see each event before the tracker does.
func (u *usual) event(e *trace.Event) {
	switch {
	case e.Kind == trace.EventStep, !u.named && e.Kind == trace.EventName && e.Category == trace.CategoryStep:
		first := e.Kind == trace.EventStep && !u.named
		u.named = u.named || first
		for _, d := range u.devices {
			if first {
				d.made, d.begun = nil, false
			}
			if d.begun { // the model and its data come before
				d.made = append(d.made[max(0, len(d.made)+1-maxUsual):], d.highest-d.begin)
			}
			d.begun, d.begin, d.highest = true, d.now, d.now
		}
	case e.Level != cuda.LevelFramework || e.Status != 0 || e.Flags&trace.FlagLate != 0:
	case e.Kind == trace.EventOOM:
		if d := u.devices[e.Device]; d != nil && len(d.made) >= usualIterations {
			u.refused[e.Seq] = comparedWith{e.Allocated - min(e.Allocated, d.begin), slices.Max(d.made),
				uint64(len(d.made))}
		}
	case (e.Kind == trace.EventAlloc || e.Kind == trace.EventFree) && heap.AccountOf(e) == heap.AccountFramework:
		d := u.devices[e.Device]
		if d == nil {
			d = &iterationsOn{}
			u.devices[e.Device] = d
		}
		d.now, d.highest = e.Allocated, max(d.highest, e.Allocated)
	}
}

// tell takes back that half the batch helps where no iteration before came near this one, and says so.
func (u *usual) tell(e *report.OOMEvent) {
	v, known := u.refused[e.Seq]
	delete(u.refused, e.Seq)
	c := e.Composition
	if !known || c == nil || c.Passes > 1 || v.most == 0 {
		return
	}
	once := v.now - min(v.now, c.RepeatedBytes)
	n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "activations" })
	if n < 0 || float64(once) < longerShare*float64(v.most) || !sizeable(e, v.now-v.most) {
		return
	}
	usualSize(e)
	first, rest, _ := strings.Cut(e.Advice[n].Text+" ", ". ")
	e.Advice[n].Text = strings.TrimSpace(first + fmt.Sprintf(". None of the %s iterations before had more than %s "+
		"beyond what was there when it began, this one has %s: if it runs the same code, its batch is larger or its "+
		"sequences are longer; limit them or sort them by length. ", report.Number(v.count), report.SizeText(v.most),
		report.SizeText(v.now)) + rest)
}
