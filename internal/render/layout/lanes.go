package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// Lane is items in the order of time. Their names may contain text from a trace.
type Lane struct {
	Name  string
	Items []LaneItem
}

// LaneItem is an interval of time, or a moment.
type LaneItem struct {
	Name   string // as short as there is room for
	Title  string // the same as text
	FromNS int64
	ToNS   int64              // FromNS of a moment
	Moment bool               // it has no end
	Parts  []report.PhasePart // of a lane of phases
}

// Names of lanes.
const (
	IterationLane = "iterations"
	Epochs        = "epochs"
	Phases        = "phases"
	Marks         = "marks"
	OutOfMemory   = "no memory"
)

// MaxLaneItems bounds the items of a lane. If there are more, consecutive iterations, epochs and phases are joined; of
// moments the first ones are kept.
const MaxLaneItems = report.MaxPhaseSpans

// Lanes are the lanes of a summary that have items.
func Lanes(s *report.Summary) []Lane {
	list := []Lane{{Name: Marks, Items: markItems(s)}, {Name: OutOfMemory, Items: oomItems(s)}}
	if t := s.Training; t != nil {
		list = append([]Lane{{IterationLane, iterationItems(t)}, {Epochs, epochItems(t)}, {Phases, phaseItems(t)}},
			list...)
	}
	return slices.DeleteFunc(list, func(l Lane) bool { return len(l.Items) == 0 })
}

// iterationItems are the iterations that ended, and the one that memtrace.step() began last.
func iterationItems(t *report.Training) (items []LaneItem) {
	if t.IterationsBy == report.IterationsByNothing {
		return nil
	}
	list := make([]*report.Iteration, 0, len(t.Iterations))
	for i := range t.Iterations {
		if t.Iterations[i].Ended || t.IterationsBy == report.IterationsByStep {
			list = append(list, &t.Iterations[i])
		}
	}
	together := 1
	for len(list) > together*MaxLaneItems {
		together *= 2
	}
	for i := 0; i < len(list); i += together {
		first, last := list[i], list[min(i+together, len(list))-1]
		item := LaneItem{Name: fmt.Sprint(first.Number), Title: fmt.Sprintf("iteration %d", first.Number),
			FromNS: first.StartNS, ToNS: last.EndNS}
		if first != last {
			item.Name, item.Title = fmt.Sprintf("%d-%d", first.Number, last.Number),
				fmt.Sprintf("iterations %d to %d", first.Number, last.Number)
		}
		items = append(items, item)
	}
	return items
}

// epochItems go from an epoch's first iteration to its last one.
func epochItems(t *report.Training) (items []LaneItem) {
	before := uint64(0)
	for i := range t.Iterations {
		it := &t.Iterations[i]
		switch {
		case !it.Ended && t.IterationsBy != report.IterationsByStep || it.Epoch == 0:
			continue
		case it.Epoch == before:
			items[len(items)-1].ToNS = it.EndNS
		default:
			items = append(items, LaneItem{Name: fmt.Sprint(it.Epoch), Title: fmt.Sprintf("epoch %d", it.Epoch),
				FromNS: it.StartNS, ToNS: it.EndNS})
		}
		before = it.Epoch
	}
	for len(items) > MaxLaneItems {
		items = report.JoinPairs(items, func(a, b LaneItem) LaneItem {
			first, _, _ := strings.Cut(a.Name, "-")
			_, last, several := strings.Cut(b.Name, "-")
			if !several {
				last = b.Name
			}
			return LaneItem{Name: first + "-" + last, Title: "epochs " + first + " to " + last, FromNS: a.FromNS,
				ToNS: b.ToNS}
		})
	}
	return items
}

func phaseItems(t *report.Training) (items []LaneItem) {
	for _, v := range t.Phases {
		item := LaneItem{FromNS: v.FromNS, ToNS: v.ToNS, Parts: v.Parts}
		if len(v.Parts) == 1 {
			item.Name, item.Title = v.Parts[0].Phase, v.Parts[0].Phase
		}
		items = append(items, item)
	}
	return items
}

// markItems are the first moments of the program's marks.
func markItems(s *report.Summary) (items []LaneItem) {
	for _, m := range s.Marks {
		if !strings.HasPrefix(m.Name, "memtrace.") {
			items = append(items, LaneItem{Name: m.Name, Title: m.Name, FromNS: m.FirstTimeNS, ToNS: m.FirstTimeNS,
				Moment: true})
		}
	}
	slices.SortStableFunc(items, func(a, b LaneItem) int { return cmp.Compare(a.FromNS, b.FromNS) })
	return items[:min(len(items), MaxLaneItems)]
}

func oomItems(s *report.Summary) (items []LaneItem) {
	for i := range s.OOM.Events {
		at := s.OOM.Events[i].TimeNS
		items = append(items, LaneItem{FromNS: at, ToNS: at, Moment: true})
	}
	return items[:min(len(items), MaxLaneItems)]
}
