package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// maxOOMLines bounds the OOM events that the text report lists besides the one that it tells in full.
const maxOOMLines = 5

// oom tells the first time that memory ran out for good, or was short, in full, and lists the others.
func writeOOM(p *page, s *report.Summary) {
	list := s.OOM.Events
	if len(list) == 0 {
		return
	}
	first := s.DetailedOOM()
	writeOOMEvent(p, &list[first], frameworkPhrase(s.Versions))
	shown := 0
	for i := range list {
		if i == first {
			continue
		}
		if shown++; shown > maxOOMLines {
			break
		}
		if shown == 1 {
			p.title("Other out-of-memory events")
			p.gap()
		}
		p.item(fmt.Sprintf("oom:%d at %s: %s", i+1, moment(list[i].TimeNS), oomLine(&list[i])))
	}
	if more := s.OOM.Count + s.OOM.RecoveredCount - uint64(1+min(shown, maxOOMLines)); more > 0 {
		p.field("", "and "+plural(more, "time", "times")+" more")
	}
	p.gap()
	writeOOMRetries(p, s.OOM.Retries)
}

// oomLine is an event in one line.
func oomLine(e *report.OOMEvent) string {
	text := fmt.Sprintf("%s requested on %s", Bytes(e.RequestedBytes), deviceName(e.Device))
	if e.Tag != "" {
		text += ", under " + visible.Text(e.Tag)
	}
	if e.Outcome == report.OOMRecovered {
		return text + "; granted after " + Bytes(e.ReleasedBytes) + " were given back"
	}
	return text
}

// oomStory tells one event: what was asked by whom, who held the memory, what was idle, and what to try.
func writeOOMEvent(p *page, e *report.OOMEvent, framework string) {
	title := fmt.Sprintf("Out of memory on %s at %s", deviceName(e.Device), moment(e.TimeNS))
	switch {
	case e.Outcome == report.OOMRecovered:
		title = fmt.Sprintf("Memory ran short on %s at %s", deviceName(e.Device), moment(e.TimeNS))
	case e.Device < 0:
		title = fmt.Sprintf("Out of %s memory at %s", hostWord(e), moment(e.TimeNS))
	}
	p.line("%s", p.paint(alarm, title))
	p.gap()
	p.field("requested", oomRequest(e, framework))
	p.field("by", oomCaller(e))
	if e.Detailed {
		p.field(deviceName(e.Device), oomDevice(e))
	}
	if e.LostRecords > 0 {
		p.styled(alarm, "lost", oomLost(e))
	}
	if a := e.Allocator; a != nil {
		p.field("cached", oomCache(a, e.RequestedBytes, framework))
	}
	if s := e.Since; s != nil {
		p.field("lately", oomSince(s))
	}
	if text := oomSteps(e.StepBytes); text != "" {
		p.field("steps", text)
	}
	p.gap()
	writeOOMCategories(p, e, framework)
	writeOOMOwners(p, e, framework)
	writeOOMAdvice(p, e)
}

func hostWord(e *report.OOMEvent) string {
	if e.Memory == "registered" || e.Memory == "host" {
		return "pinned host"
	}
	return visible.Text(e.Memory)
}

func oomRequest(e *report.OOMEvent, framework string) string {
	text := Bytes(e.RequestedBytes)
	if e.Memory != "device" {
		text += " of " + visible.Text(e.Memory) + " memory"
	}
	if e.Level == "framework" {
		text += ", a block of " + framework + "'s"
		if e.DriverRequestedBytes > 0 && e.DriverRequestedBytes != e.RequestedBytes {
			text += ", for which it wanted " + Bytes(e.DriverRequestedBytes) + " from the driver"
		}
	}
	if e.Attempts == 0 {
		return text + "; it gave up without asking the driver"
	}
	if e.Attempts > 1 {
		text += "; the driver refused " + plural(e.Attempts, "time", "times") + " within " + Duration(e.TimeNS-e.FirstTimeNS)
	} else {
		text += "; the driver refused"
	}
	if e.ReleasedBytes > 0 {
		text += ", " + Bytes(e.ReleasedBytes) + " were given back in between"
	}
	if e.Outcome == report.OOMRecovered {
		text += ", and then it was granted"
	}
	return text
}

func oomCaller(e *report.OOMEvent) string {
	text := "thread " + visible.Text(e.Thread)
	if e.Site != "" {
		text = visible.Text(e.Site) + ", " + text
	}
	if e.Tag != "" {
		text += ", under tag " + visible.Text(e.Tag)
	}
	if e.Call != "" {
		text += ", by " + visible.Text(e.Call)
	}
	if e.Caller != "" {
		text += " called from " + visible.Text(e.Caller)
	}
	return text
}

func oomDevice(e *report.OOMEvent) string {
	text := Bytes(e.UsedBytes) + " in use"
	if e.TotalBytes > 0 {
		text += " of " + Bytes(e.TotalBytes)
	}
	if e.Sample == nil {
		if e.TotalBytes > 0 {
			text += ", so at most " + Bytes(e.FreeBytes) + " free"
		}
		return text + "; the device itself was not asked, so its context, its code and other processes are missing here"
	}
	text += ", " + Bytes(e.FreeBytes) + " free"
	if e.Sample.UsedBytes == e.UsedBytes {
		return text + "; NVML agrees"
	}
	return text + fmt.Sprintf("; the device reported %s in use at %s", Bytes(e.Sample.UsedBytes), moment(e.Sample.TimeNS))
}

// oomLost says what the figures below are worth.
func oomLost(e *report.OOMEvent) string {
	text := plural(e.LostRecords, "record was", "records were") + " lost before that: owners are as recorded, and may hold less (a free is missing) or more (an allocation is)"
	if e.Sample != nil {
		text += "; what the device itself says is right"
	}
	return text
}

func oomCache(a *report.OOMAllocator, requested uint64, framework string) string {
	text := fmt.Sprintf("%s holds %s and has %s of it in blocks", framework, Bytes(a.ReservedBytes), Bytes(a.AllocatedBytes))
	if a.IdleBytes == 0 {
		return text + ": nothing is cached but idle"
	}
	text += fmt.Sprintf(": %s are cached but idle", Bytes(a.IdleBytes))
	if a.Pieces.FreePieces > 0 {
		text += fmt.Sprintf(", in %s; the largest free block is %s", plural(a.Pieces.FreePieces, "piece", "pieces"), Bytes(a.Pieces.LargestFreeBytes))
		if largest := a.Pieces.LargestFreeBytes; largest < requested {
			text += fmt.Sprintf(", %.1f%% of the request", 100*float64(largest)/float64(requested))
		}
	}
	return text
}

func oomSince(s *report.OOMGrowth) string {
	text := fmt.Sprintf("%s came since %s at %s and are still held", Bytes(s.Bytes), visible.Text(s.What), moment(s.TimeNS))
	const shown = 3
	var parts []string
	for _, row := range s.Rows[:min(shown, len(s.Rows))] {
		parts = append(parts, visible.Text(row.Key)+" "+Bytes(row.Bytes))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// oomSteps shows what was live when the latest steps began.
func oomSteps(steps []uint64) string {
	if len(steps) < 2 {
		return ""
	}
	var parts []string
	for _, bytes := range steps {
		parts = append(parts, Bytes(bytes))
	}
	return "the last " + plural(uint64(len(steps)), "step", "steps") + " began with " + strings.Join(parts, ", ")
}

// oomOwners tells who filled the device: by tag if the program set any, and shorter by its places, if they are known;
// else by what says most.
func writeOOMOwners(p *page, e *report.OOMEvent, framework string) {
	l := bestLedger(e)
	if l == nil || len(l.Rows) == 0 {
		return
	}
	writeOOMLedger(p, e, l, framework, p.rowLimit())
	if places := ledgerBy(e, "site"); places != nil && places != l {
		writeOOMLedger(p, e, places, framework, max(p.rowLimit()/2, 1))
	}
}

// oomLedger prints the table of one grouping, with a limit on the rows of blocks.
func writeOOMLedger(p *page, e *report.OOMEvent, l *report.Ledger, framework string, limit int) {
	title := "Who filled " + deviceName(e.Device)
	if l.Rows[0].Owner == report.OwnerBlocks {
		title += ", by " + l.By
	}
	p.title(title)
	p.gap()
	rows := foldOwners(l.Rows, limit)
	shares, largest := sharesOf(rows, func(r *report.LedgerRow) uint64 { return r.Bytes })
	var cells [][]cell
	for i, row := range rows {
		cells = append(cells, []cell{{oomOwner(&row, framework), plain}, {Bytes(row.Bytes), strong}, {percent(shares[i]), plain},
			{bar(row.Bytes, largest, barWidth, p.ASCII), oomStyle(row.Owner)}})
	}
	cells = append(cells, []cell{{"in use", strong}, {Bytes(l.WholeBytes), strong}, {"100.0%", plain}, {}})
	p.table([]column{{title: "owner"}, {title: "bytes", right: true}, {title: "share", right: true}, {optional: 1}}, cells)
	p.gap()
}

// foldOwners sums up the smallest blocks where there are more than limit; what is no block stays. Largest first, what
// was summed up behind the blocks.
func foldOwners(list []report.LedgerRow, limit int) []report.LedgerRow {
	n := 0
	for n < len(list) && list[n].Owner == report.OwnerBlocks {
		n++
	}
	rows := slices.Clone(list)
	rest := report.LedgerRow{Owner: report.OwnerBlocks}
	if n > limit {
		for _, row := range rows[limit:n] {
			rest.Bytes += row.Bytes
		}
		rest.Key = fmt.Sprintf("Others (%d more)", n-limit)
		rows = slices.Delete(rows, limit, n)
	}
	slices.SortStableFunc(rows, func(a, b report.LedgerRow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if rest.Key != "" {
		rows = append(rows, rest)
	}
	return rows
}

func oomStyle(owner string) style {
	switch owner {
	case report.OwnerBlocks:
		return blocks
	case report.OwnerSlack:
		return slack
	}
	return outside
}

// bestLedger picks the grouping that says most, as bestGrouping does for the whole run.
func bestLedger(e *report.OOMEvent) *report.Ledger {
	for _, by := range []string{"tag", "site", "library"} {
		if l := ledgerBy(e, by); l != nil && slices.ContainsFunc(l.Rows, func(r report.LedgerRow) bool {
			return r.Owner == report.OwnerBlocks && r.Key != report.Untagged && r.Key != report.UnknownLibrary
		}) {
			return l
		}
	}
	return ledgerBy(e, "api")
}

func ledgerBy(e *report.OOMEvent, by string) *report.Ledger {
	for i := range e.Ledgers {
		if e.Ledgers[i].By == by {
			return &e.Ledgers[i]
		}
	}
	return nil
}

func oomOwner(r *report.LedgerRow, framework string) string {
	switch r.Owner {
	case report.OwnerBlocks:
		return visible.Text(r.Key)
	case report.OwnerSlack:
		return framework + " cache, idle"
	case report.OwnerOutside:
		return "outside of " + framework + ": " + visible.Text(r.Key)
	}
	return "(" + visible.Text(r.Key) + ")"
}

func writeOOMAdvice(p *page, e *report.OOMEvent) {
	if len(e.Advice) == 0 {
		return
	}
	p.title("What to try")
	p.gap()
	for _, a := range e.Advice {
		p.item(visible.Text(a.Text))
	}
	p.gap()
}

// OOMText writes one OOM event as a text that stands without its trace.
func OOMText(w io.Writer, r *report.OOMReport, o Options) error {
	p := newPage(w, o)
	writeOOMEvent(p, &r.Event, frameworkPhrase(r.Versions))
	p.title("The run")
	p.gap()
	p.field("command", cmp.Or(command(r.Process), "unknown"))
	p.field("process", process(r.Process))
	if started, err := time.Parse(time.RFC3339Nano, r.Process.Started); err == nil {
		p.field("happened", started.Add(time.Duration(r.Event.TimeNS)).Format("2006-01-02 15:04:05 MST"))
	}
	if text := software(r.Versions); text != "" {
		p.field("software", text)
	}
	for _, d := range r.Devices {
		p.field(deviceName(d.Index), device(d, r.NullGPU))
	}
	p.gap()
	if o.Path != "" {
		p.line("%s memtrace report --at oom %s", o.paint(strong, "Next:"), ShellWord(o.Path))
	}
	if p.failure() != nil {
		return fmt.Errorf("write the OOM text: %w", p.failure())
	}
	return nil
}

// ranOut says behind an exit status other than 0 that memory had run out before, if it had.
func ranOut(s *report.Summary, ended string) string {
	status := s.Process.ExitStatus
	if status == nil || *status == 0 || s.OOM.Count == 0 {
		return ended
	}
	if s.Versions["torch"] != "" {
		return ended + " after torch.OutOfMemoryError"
	}
	return ended + " after running out of memory"
}

// OOMSheets tell the first time that memory ran out, or was short, and list the others; nil if it was not.
func OOMSheets(s *report.Summary, rows int) []Sheet {
	return sheetsOf(rows, func(p *page) { writeOOM(p, s) })
}
