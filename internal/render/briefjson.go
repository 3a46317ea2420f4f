package render

import (
	"encoding/json"
	"fmt"
	"io"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// BriefSchema names the shape of the brief form.
const BriefSchema = "memtrace.brief/1"

const (
	// briefBytes bounds the brief form: some 2,000 tokens of a language model.
	briefBytes = 6000
	// briefName bounds a name in it, in columns, and briefSentence a sentence.
	briefName     = 72
	briefSentence = 300
)

// briefReport is the first output for programs and agents: the answer, its basis, and commands to run next.
type briefReport struct {
	Schema     string            `json:"schema"`
	Trace      string            `json:"trace"`
	Sentences  []string          `json:"sentences"`
	Verdict    *report.Verdict   `json:"verdict"`
	Facts      map[string]string `json:"facts"`
	Moment     string            `json:"moment"` // of the tables
	Categories []briefOwner      `json:"categories,omitempty"`
	Modules    []briefOwner      `json:"modules,omitempty"`
	OwnersBy   string            `json:"owners_by,omitempty"`
	Owners     []briefOwner      `json:"owners,omitempty"`
	Advice     []string          `json:"advice,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Next       []briefNext       `json:"next"`
}

// briefOwner is a row; the last one may join several.
type briefOwner struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"`
	Share string `json:"share"`
}

type briefNext struct {
	Command string `json:"command"`
	Shows   string `json:"shows"`
}

// BriefJSON writes the answer as one JSON object of at most 6,000 bytes, for any trace; see docs/skill.md. Options.Path
// is the trace.
func BriefJSON(w io.Writer, s *report.Summary, o layout.Options) error {
	for rows := 8; ; rows-- {
		text, err := json.Marshal(briefOf(s, o, rows))
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		if len(text) < briefBytes || rows == 0 {
			_, err = w.Write(append(text, '\n'))
			return err
		}
	}
}

func briefOf(s *report.Summary, o layout.Options, rows int) briefReport {
	short := func(text string) string { return layout.Clip(text, briefName, false) }
	sentences := func(list []string) []string {
		var cut []string
		for _, text := range list[:min(len(list), rows)] {
			cut = append(cut, layout.Clip(text, briefSentence, false))
		}
		return cut
	}
	owners := func(list []Owner) []briefOwner {
		var cut []briefOwner
		for _, r := range list {
			cut = append(cut, briefOwner{short(r.Name), r.Bytes, r.Share})
		}
		return cut
	}
	v := briefReport{Schema: BriefSchema, Trace: short(sanitize.Text(o.Path)), Sentences: []string{},
		Verdict: briefVerdict(s, short), Facts: make(map[string]string), Moment: "peak", Next: []briefNext{}}
	for _, text := range Verdict(s) {
		v.Sentences = append(v.Sentences, layout.Clip(text, briefSentence, false))
	}
	for i, f := range Facts(s) {
		if i < 3+rows {
			v.Facts[f.Name] = layout.Clip(f.Value, 2*briefName, false)
		}
	}
	v.Advice, v.Notes = sentences(Advice(s)), sentences(Notes(s))
	for _, next := range nextCommands(s, o) {
		v.Next = append(v.Next, briefNext{layout.Clip(next.command, 2*briefName, false), next.shows})
	}
	if rows < 2 || len(s.By) == 0 {
		return v
	}
	v.Categories, v.Modules = owners(PeakCategories(s, rows)), owners(PeakModules(s, rows))
	if l := s.Ledger(s.By[0]); l != nil {
		v.OwnersBy, v.Moment, v.Owners = l.By, l.Moment, owners(Owners(s, l, rows))
	}
	return v
}

// briefVerdict is the verdict with names that are not longer than others.
func briefVerdict(s *report.Summary, short func(string) string) *report.Verdict {
	v := s.Verdict()
	for _, part := range []*report.VerdictShare{v.Category, v.Owner, v.Operator, v.Module} {
		if part != nil {
			part.Name = short(part.Name)
		}
	}
	return v
}
