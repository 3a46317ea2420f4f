package render

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
)

// The case of these views is also that of the tests of the default report and of a difference of parameters.

// TestReportsOfTraining renders the training part of the default report.
func TestReportsOfTraining(t *testing.T) {
	compareFile(t, "report.txt", written(t, func(w io.Writer) error {
		return Text(w, trainingCase(12, 3*mib), layout.Options{})
	}))
	asked := trainingCase(12, 0)
	asked.Asked = true
	if text := written(t, func(w io.Writer) error {
		return Text(w, asked, layout.Options{})
	}); strings.Contains(text, "Iterations") {
		t.Errorf("a report by a grouping that was asked for speaks of iterations:\n%s", text)
	}
	silent := trainingCase(1, 0)
	silent.Training = &report.Training{Level: "driver", IterationsBy: report.IterationsByNothing,
		Iterations: silent.Training.Iterations, Categories: caseCategories}
	if text := written(t, func(w io.Writer) error {
		return Text(w, silent, layout.Options{})
	}); strings.Contains(text, "Iterations") || strings.Contains(text, "rules") {
		t.Errorf("a report of a program that trains nothing speaks of training:\n%s", text)
	}
}

// "4 more categories" hid the parameters on a screen of 30 lines: every category is listed while the screen has room,
// and a short screen hides the smallest.
func TestCategoriesFillTheScreen(t *testing.T) {
	s := trainingCase(3, 0)
	brief := func(more int) string {
		for i := range more {
			s.Notes = append(s.Notes, fmt.Sprint("note ", i))
		}
		s.Health.Complete = more == 0
		return written(t, func(w io.Writer) error { return firstScreen(w, s, layout.Options{}) })
	}
	if text := brief(0); strings.Contains(text, "more categories") || strings.Count(text, "\n") > briefLines {
		t.Errorf("categories are hidden, or the screen is long:\n%s", text)
	}
	if text := brief(40); !strings.Contains(text, "more categories") || !strings.Contains(text, "Feature maps") {
		t.Errorf("a long screen hides no category, or the largest:\n%s", text)
	}
}

// The peak of a snapshot is what was live when it was made: it did not peak then, and has no curve.
func TestSnapshotIsOneMoment(t *testing.T) {
	s := trainingCase(3, 0)
	s.Process.Snapshot = true
	text := written(t, func(w io.Writer) error { return Text(w, s, layout.Options{}) })
	if !strings.Contains(text, "when the snapshot was made") || strings.Contains(text, "peaked at") ||
		strings.Contains(text, "over time") || strings.Contains(text, "for at the peak") {
		t.Errorf("a report of a snapshot:\n%s", text)
	}
}

// TestGoldenDiffOfParameters renders a model that lost a layer's gradients, grew in another, and whose head has another
// name.
func TestGoldenDiffOfParameters(t *testing.T) {
	base, changed := trainingCase(3, 0), trainingCase(3, 0)
	list := changed.Training.Parameters
	list[1].Gradient = 0
	list[3].Bytes, list[3].States = 2*list[3].Bytes, nil
	list[25].Name = "head.weight"
	list[26].Bytes = 2 * mib
	d := diff.New(base, changed)
	compareFile(t, "diff.txt", written(t, func(w io.Writer) error {
		return DiffParameters(w, d, layout.Options{})
	}))
	compareFile(t, "diff-short.txt", written(t, func(w io.Writer) error {
		return DiffParameters(w, d, layout.Options{Rows: 2, Width: 60})
	}))
	if err := DiffParameters(io.Discard, diff.New(&report.Summary{}, changed), layout.Options{}); err == nil {
		t.Error("a diff without training is written")
	}
}
