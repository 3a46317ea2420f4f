package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// launchFigure counts kernel launches.
type launchFigure struct {
	noFigure
	count uint64
}

func (l *launchFigure) needs() need { return need{events: kindsOf(trace.EventLaunch)} }

func (l *launchFigure) event(e *trace.Event) {
	if e.Status == 0 {
		l.count++
	}
}

func (l *launchFigure) restart(int64) { l.count = 0 }

func (l *launchFigure) answer(_ *query, s *report.Summary) { s.Launches = l.count }

// iterationFigure counts the steps and the epochs that the program announces.
type iterationFigure struct {
	noFigure
	steps, epochs report.Iterations
}

func (f *iterationFigure) needs() need {
	return need{events: kindsOf(trace.EventStep, trace.EventEpoch)}
}

func (f *iterationFigure) event(e *trace.Event) {
	switch e.Kind {
	case trace.EventStep:
		addIteration(&f.steps, e)
	case trace.EventEpoch:
		addIteration(&f.epochs, e)
	}
}

func (f *iterationFigure) restart(int64) {
	f.steps, f.epochs = report.Iterations{}, report.Iterations{}
}

func (f *iterationFigure) answer(_ *query, s *report.Summary) { s.Steps, s.Epochs = f.steps, f.epochs }

func addIteration(i *report.Iterations, e *trace.Event) {
	if i.Count == 0 {
		i.FirstNumber, i.FirstTimeNS = e.Count, e.Time
	}
	i.Count++
	i.LastNumber, i.LastTimeNS = e.Count, e.Time
}

// markFigure keeps what was live at the latest mark of each name.
type markFigure struct {
	noFigure
	accounts *accounts
	losses   *losses
	list     []markCount
	index    map[trace.StringID]int
}

type markCount struct {
	id trace.StringID
	report.Mark
	sure [2]uint64 // of the driver's and the framework's bytes, what is certain
}

func (f *markFigure) needs() need { return need{events: kindsOf(trace.EventMark)} }

func (f *markFigure) event(e *trace.Event) {
	i, known := f.index[e.Name]
	if !known {
		if i = len(f.list); f.index == nil {
			f.index = make(map[trace.StringID]int)
		}
		f.index[e.Name] = i
		f.list = append(f.list, markCount{id: e.Name, Mark: report.Mark{FirstTimeNS: e.Time}})
	}
	m := &f.list[i]
	m.Count++
	m.LastTimeNS = e.Time
	driver, framework := &f.accounts.details[heap.AccountDriver].Total, &f.accounts.details[heap.AccountFramework].Total
	m.DriverBytes, m.FrameworkBytes = driver.Current, framework.Current
	if m.sure = [2]uint64{m.DriverBytes, m.FrameworkBytes}; f.losses.uncertain {
		m.sure = [2]uint64{driver.Certain, framework.Certain}
	}
}

func (f *markFigure) restart(int64) { f.list, f.index = nil, nil }

// each visits the names.
func (f *markFigure) each(visit func(name trace.StringID)) {
	for i := range f.list {
		visit(f.list[i].id)
	}
}

func (f *markFigure) answer(q *query, s *report.Summary) {
	s.Marks = []report.Mark{}
	for _, m := range f.list {
		m.Name = q.resolver.Tables.String(m.id)
		if q.certain.bounds != nil {
			sure := m.sure
			if q.certain.noLowerBound() {
				sure = [2]uint64{}
			}
			m.DriverBytesLower, m.FrameworkBytesLower = &sure[0], &sure[1]
		}
		s.Marks = append(s.Marks, m.Mark)
	}
}
