package check

import (
	"fmt"
	"io"
	"strings"

	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// Markdown writes the outcome for the summary of a pull request. Whatever comes from a trace is in code, where nothing
// is a mark, a link or a mention.
func Markdown(w io.Writer, o *Outcome) error {
	sign := map[string]string{Passed: "✅", Failed: "❌", Broken: "⚠️"}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s GPU memory: %s\n", sign[o.Status], strings.TrimSuffix(o.Headline(), "."))
	for _, group := range o.byTrace() {
		fmt.Fprintf(&b, "\n%s\n\n", code(title(&group[0])))
		b.WriteString("| | gate | baseline | limit | value | |\n|---|---|---:|---:|---:|---|\n")
		var details []string
		for i := range group {
			r := &group[i]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", sign[r.Status], code(gateName(r)), figureText(r.Base),
				r.limitText(), figureText(r.Value), r.statusWords())
			if r.remark() != "" {
				text := gateName(r) + ": " + r.remark()
				if r.File != "" {
					text += fmt.Sprintf("\n    %s:%d", sanitize.Text(cli.ShortPath(r.File)), r.Line)
				}
				details = append(details, text)
			}
		}
		if len(details) > 0 {
			b.WriteString("\n" + fenced(details))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// code writes text as a code span of a table's cell. A bar would end the cell, whatever is before it.
func code(text string) string {
	text = strings.NewReplacer("|", `\x7c`, "\n", " ").Replace(sanitize.Text(text))
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || strings.TrimSpace(text) == "" {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// fencedColumns is how wide a block of code may be: viewers hide the rest of a line behind a bar.
const fencedColumns = 96

// fenced writes lines as a block of code, in which the place is a line of its own. Only the lines' own ends are ones.
func fenced(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		text, place, placed := strings.Cut(line, "\n    ")
		for i, part := range layout.Wrap(sanitize.Text(text), fencedColumns) {
			b.WriteString(strings.Repeat("  ", min(i, 1)) + part + "\n")
		}
		if placed {
			b.WriteString("  " + sanitize.Text(place) + "\n")
		}
	}
	fence := strings.Repeat("`", max(3, longestRun(b.String(), '`')+1))
	return fence + "text\n" + b.String() + fence + "\n"
}

func longestRun(text string, of rune) (longest int) {
	run := 0
	for _, c := range text {
		if c != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Annotations writes what did not pass as commands of GitHub's runner, which shows them at the source lines. root is
// the folder of the sources.
func Annotations(w io.Writer, o *Outcome, root string) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for i := range o.Results {
		r := &o.Results[i]
		if r.Status == Passed {
			continue
		}
		where := ""
		if file := sourceFile(r.File, root); file != "" {
			where = fmt.Sprintf("file=%s,line=%d,", property.Replace(sanitize.Text(file)), r.Line)
		}
		text := sanitize.Text(r.Text)
		if r.Trace != "" {
			text = sanitize.Text(r.Trace) + ": " + text
		}
		if _, err := fmt.Fprintf(w, "::error %stitle=%s::%s\n", where,
			property.Replace("memtrace check: "+sanitize.Text(gateName(r))), message.Replace(text)); err != nil {
			return fmt.Errorf("write annotations: %w", err)
		}
	}
	return nil
}
