package page

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

//go:embed index.html
var indexText string

var indexTemplate = template.Must(template.New("index").Parse(indexText))

// IndexRow is a trace in a list of them.
type IndexRow struct {
	Name    string
	Address string // of its page; "" if it cannot be read
	Command string
	State   string
	Bytes   int64
	Changed time.Time
	Problem string
}

// Size is the file's size, formatted.
func (r IndexRow) Size() string { return layout.Bytes(uint64(max(r.Bytes, 0))) }

// When is the time of the last change.
func (r IndexRow) When() string { return r.Changed.Format("2006-01-02 15:04:05") }

// WriteIndex writes a page with the traces of a folder. It has no script.
func WriteIndex(w io.Writer, title, writer string, rows []IndexRow) error {
	for i := range rows {
		r := &rows[i]
		r.Name, r.Command, r.State, r.Problem = sanitize.Text(r.Name), sanitize.Text(r.Command), sanitize.Text(r.State),
			sanitize.Text(r.Problem)
	}
	return indexTemplate.Execute(w, map[string]any{"Title": sanitize.Text(title), "Writer": writer, "Rows": rows,
		"Style": template.CSS(styleText), "StyleHash": hash(styleText)})
}
