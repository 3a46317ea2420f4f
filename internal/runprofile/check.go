package runprofile

import (
	"errors"
	"fmt"

	"memtrace/analyzer/report"
)

// A file may say anything: what the readers of a summary rely on is checked when it is read.

var errNoSummary = errors.New("damaged: it has no report")

func checkHead(h *report.Head) error {
	if h.Summary == nil {
		return errNoSummary
	}
	n, s := len(h.Steps.Number), &h.Steps
	if len(s.Count) != n || len(s.StartNS) != n || len(s.EndNS) != n || len(s.Peak) != n || len(s.End) != n ||
		len(s.Requests) != n {
		return errors.New("damaged: columns of the table of steps differ in length")
	}
	if n > report.MaxSteps || len(s.Held) != 0 && len(s.Held) != len(h.Categories) {
		return errors.New("damaged: the table of steps is not as large as it should be")
	}
	for _, held := range s.Held {
		if len(held) != n {
			return errors.New("damaged: columns of the table of steps differ in length")
		}
	}
	return checkSummary(h.Summary)
}

func (b *Body) check() error {
	if b.Summary == nil {
		return errNoSummary
	}
	if len(b.Stacks.ID) != len(b.Stacks.Stack) {
		return errors.New("damaged: call stacks without identifiers")
	}
	for _, stack := range b.Stacks.Stack {
		for _, frame := range stack {
			if frame < 0 || frame >= len(b.Stacks.Frames) {
				return fmt.Errorf("damaged: a call stack has frame %d of %d", frame, len(b.Stacks.Frames))
			}
		}
	}
	for i := range b.Moments {
		if err := b.checkCells(&b.Moments[i].Cells); err != nil {
			return err
		}
	}
	if b.Hidden.Limits == nil {
		b.Hidden.Limits = []report.Finding{}
	}
	b.Hidden.restore(b.Summary)
	return checkSummary(b.Summary)
}

func (b *Body) checkCells(c *Cells) error {
	n := len(c.Bytes)
	if len(c.Category) != n || len(c.Module) != n || len(c.Stack) != n {
		return errors.New("damaged: columns of a moment differ in length")
	}
	for i := range n {
		if c.Category[i] < 0 || c.Category[i] >= len(b.Names) || c.Module[i] < 0 || c.Module[i] >= len(b.Names) ||
			c.Stack[i] < -1 || c.Stack[i] >= len(b.Stacks.ID) {
			return errors.New("damaged: a moment refers to a name or a call stack that is not there")
		}
	}
	return nil
}

func checkSummary(s *report.Summary) error {
	if s.Trend == nil {
		return errors.New("damaged: it does not say whether memory grows")
	}
	for i := range s.OOM.Retries {
		if s.OOM.Retries[i].FailedCount == 0 {
			return errors.New("damaged: retries without an attempt")
		}
	}
	return checkTraining(s.Training)
}

func checkTraining(t *report.Training) error {
	if t == nil {
		return nil
	}
	if t.Highest < -1 || t.Highest >= len(t.Iterations) {
		return fmt.Errorf("damaged: iteration %d of %d is the highest", t.Highest, len(t.Iterations))
	}
	n := len(t.Categories)
	for i := range t.Iterations {
		it := &t.Iterations[i]
		for _, m := range []*report.IterationMoment{&it.Peak, it.Forward, it.Backward, it.Optimizer} {
			if m != nil && len(m.Held) != n {
				return errCategories
			}
		}
		if len(it.Highest) != n || len(it.End) != n || it.Stayed != nil && len(it.Stayed) != n {
			return errCategories
		}
	}
	if t.Modules == nil {
		return nil
	}
	return checkModule(t.Modules, n)
}

var errCategories = errors.New("damaged: a row has not as many columns as there are categories")

func checkModule(m *report.Module, categories int) error {
	for i := range m.Moments {
		if len(m.Moments[i].Own) != categories || len(m.Moments[i].Subtree) != categories {
			return errCategories
		}
	}
	for i := range m.Children {
		if err := checkModule(&m.Children[i], categories); err != nil {
			return err
		}
	}
	return nil
}
