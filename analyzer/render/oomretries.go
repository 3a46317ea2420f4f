package render

import (
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// oomCategories prints what the framework's blocks were for when memory ran out.
func writeOOMCategories(p *page, e *report.OOMEvent, framework string) {
	if len(e.Categories) == 0 {
		return
	}
	p.title("What " + framework + "'s memory was for")
	p.gap()
	var bytes, count uint64
	shares, largest := sharesOf(e.Categories, func(c *report.OOMCategory) uint64 { return c.Bytes })
	var cells [][]cell
	for i, c := range e.Categories {
		bytes, count = bytes+c.Bytes, count+c.BlockCount
		cells = append(cells, []cell{{visible.Text(categoryWord(c.Category)), plain}, {Bytes(c.Bytes), strong}, {percent(shares[i]), plain}, {Count(c.BlockCount), plain},
			{bar(c.Bytes, largest, barWidth, p.ASCII), blocks}})
	}
	cells = append(cells, []cell{{"in blocks", strong}, {Bytes(bytes), strong}, {"100.0%", plain}, {Count(count), plain}, {}})
	p.table([]column{{title: "category"}, {title: "bytes", right: true}, {title: "share", right: true}, {title: "blocks", right: true}, {optional: 1}}, cells)
	p.gap()
}

// oomRetries says what came after memory had run out.
func writeOOMRetries(p *page, list []report.OOMRetries) {
	list = slices.DeleteFunc(slices.Clone(list), func(r report.OOMRetries) bool { return !toldOf(&r) })
	if len(list) == 0 {
		return
	}
	p.title("Attempts")
	p.gap()
	for i := range list[:min(len(list), maxOOMLines)] {
		p.item(retriesText(&list[i]))
	}
	if more := len(list) - maxOOMLines; more > 0 {
		p.item("and " + plural(uint64(more), "time", "times") + " more")
	}
	p.gap()
}

// toldOf reports whether there is more to say of attempts than that one failed, which stands elsewhere.
func toldOf(r *report.OOMRetries) bool {
	return r.FailedCount > 1 || r.GrantedTimeNS != 0 || r.AsMuchTimeNS != 0 || r.StepTimeNS != 0
}

// retriesText says which attempts failed, and which one succeeded, as far as that is known.
func retriesText(r *report.OOMRetries) string {
	text := fmt.Sprintf("The attempt at %s failed (%s requested)", moment(r.LastTimeNS), Bytes(r.RequestedBytes))
	if r.FailedCount > 1 {
		text = fmt.Sprintf("%s failed, the first at %s (%s requested), the last at %s (%s)", plural(r.FailedCount, "attempt", "attempts"), moment(r.FirstTimeNS), Bytes(r.FirstRequestedBytes),
			moment(r.LastTimeNS), Bytes(r.RequestedBytes))
	}
	attempt, succeeded := r.Succeeded()
	switch {
	case succeeded:
		text += fmt.Sprintf("; attempt %s succeeded: a step ended at %s.", Count(attempt), moment(r.StepTimeNS))
	case r.GrantedTimeNS == 0 && r.AsMuchTimeNS == 0:
		return text + "; no later attempt is known to have succeeded."
	default:
		text += "; no step is known to have ended afterwards."
	}
	if r.GrantedTimeNS != 0 {
		text += fmt.Sprintf(" The same call was granted %s at %s.", Bytes(r.GrantedBytes), moment(r.GrantedTimeNS))
	}
	if r.AsMuchTimeNS != 0 {
		return text + fmt.Sprintf(" A block as large as the refused one was granted at %s.", moment(r.AsMuchTimeNS))
	}
	return text + " No block as large as the refused one was granted."
}

// attemptSentence is the shortest form of it, for a verdict: " Attempt 3 succeeded."; "" where none is known to have.
func attemptSentence(o *report.OOM) string {
	for i := range o.Retries {
		if _, succeeded := o.Retries[i].Succeeded(); !succeeded {
			return ""
		}
	}
	switch len(o.Retries) {
	case 0:
		return ""
	case 1:
		attempt, _ := o.Retries[0].Succeeded()
		return fmt.Sprintf(" Attempt %s succeeded.", Count(attempt))
	}
	return " Each time a later attempt succeeded."
}

// OOMRetriesText writes what came after memory had run out, as the end of the text that OOMText began.
func OOMRetriesText(w io.Writer, r *report.OOMRetries, o Options) error {
	p := newPage(w, o)
	writeOOMRetries(p, []report.OOMRetries{*r})
	if p.failure() != nil {
		return fmt.Errorf("write the OOM text: %w", p.failure())
	}
	return nil
}
