package page

import (
	_ "embed"
	"io"
	"time"

	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

//go:embed index.html
var indexText string

var indexTemplate = parsed("index", indexText)

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
	name := sanitize.Text(title)
	return indexTemplate.Execute(w, struct {
		head
		Name string
		Rows []IndexRow
	}{newHead(name, writer, ""), name, rows})
}
