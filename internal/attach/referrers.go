package attach

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/term"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/control"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// referrersSchema names the form of what is written as JSON, here and by the Python package when memory runs out.
const referrersSchema = "memtrace.referrers/1"

// referrersReport is what is written as JSON.
type referrersReport struct {
	Schema  string         `json:"schema"`
	PID     int            `json:"pid"`
	Tensors uint64         `json:"tensors"`
	Late    bool           `json:"late"`
	Unread  bool           `json:"graphs_unread"`
	Holders []placedHolder `json:"holders"`
}

// placedHolder is a holder and the places at which its tensors' memory was allocated.
type placedHolder struct {
	report.Kept
	Sites []holderSite `json:"sites"` // those of most storages first
}

// holderSite is a place of the program, "" where the trace does not know it.
type holderSite struct {
	Site     string `json:"site"`
	Storages int    `json:"storages"`
}

// ReferrersOptions bound a search for referrers and hold where its result goes.
type ReferrersOptions struct {
	Output  string
	Force   bool
	JSON    bool
	Rows    int
	Timeout time.Duration // for which the program may be stopped
}

// Referrers shows what refers to the tensors of a process.
func (r *Recorder) Referrers(o ReferrersOptions, pid int) error {
	if o.Rows < 1 || o.Rows > control.MostRows {
		return cli.UsageErrorf("-n %d: choose between 1 and %d rows", o.Rows, control.MostRows)
	}
	if o.Timeout < time.Millisecond || o.Timeout > control.MostPatience {
		return cli.UsageErrorf("--timeout %s: choose between 1ms and %s", o.Timeout, control.MostPatience)
	}
	status, err := r.Request(pid, "status")
	if err != nil {
		return err
	}
	if status.State == control.Asleep {
		return fmt.Errorf(
			"process %d is not recorded, and nothing is known of it before; to begin, type: memtrace ctl %d start", pid,
			pid)
	}
	begin := time.Now()
	// what autograd graphs have saved, and so the order, is known of all together
	answer, found, err := control.FindReferrers(pid, control.MostRows, o.Timeout)
	if err != nil {
		return fmt.Errorf("search process %d: %w", pid, err)
	}
	r.Log.Info().Msgf("the search took %s", time.Since(begin).Round(time.Millisecond))
	text := referrersReport{Schema: referrersSchema, PID: pid, Tensors: found.Tensors, Late: found.Late,
		Unread: found.GraphsUnread, Holders: []placedHolder{}}
	sites, saved := r.sitesOf(pid, answer, found)
	for _, h := range mostHeld(report.KeptOf(found.Holders, saved, 0)) {
		if len(text.Holders) < o.Rows {
			text.Holders = append(text.Holders, placedHolder{h, sites.of(&h.Holder)})
		}
	}
	return r.writeReferrers(o, &text, found.LeftOut)
}

// mostHeld orders holders by what they hold, whether others do as well or not, the most first. Those whose memory is
// all of holders before them are last, as it is counted once.
func mostHeld(list []report.Kept) []report.Kept {
	slices.SortStableFunc(list, func(a, b report.Kept) int {
		return cmp.Compare(b.FreesBytes+b.SharedBytes, a.FreesBytes+a.SharedBytes)
	})
	seen := map[uint64]bool{}
	var first, again []report.Kept
	for _, h := range list {
		isNew := len(h.Storages) == 0 || h.GraphBytes > 0
		for _, address := range h.Storages {
			isNew = isNew || !seen[address]
			seen[address] = true
		}
		if isNew {
			first = append(first, h)
		} else {
			again = append(again, h)
		}
	}
	return append(first, again...)
}

func (r *Recorder) writeReferrers(o ReferrersOptions, found *referrersReport, leftOut uint64) error {
	if o.JSON {
		return r.WriteTo(o.Output, o.Force, sanitize.JSON, func(w io.Writer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			return encoder.Encode(found)
		})
	}
	width := cli.WidthDefault
	if o.Output == "" || o.Output == "-" {
		width = cli.ReportWidth(r.Stdout, r.Stdout != nil && term.IsTerminal(int(r.Stdout.Fd())))
	}
	return r.WriteTo(o.Output, o.Force, sanitize.Lines, func(w io.Writer) error {
		text := holderText{width: width}
		text.report(found, leftOut)
		_, err := io.WriteString(w, text.String())
		return err
	})
}

// allocationSites are where a process's storages were allocated; nil without a trace that holds them.
type allocationSites map[uint64]analyzer.LiveSite

// sitesOf looks the storages up in the trace as it is now, and what autograd graphs may have saved. Without it the
// holders are known all the same.
func (r *Recorder) sitesOf(pid int, answer control.Answer, found *control.Referrers) (allocationSites, uint64) {
	if answer.Trace == "" || found.Seq == 0 {
		r.Log.Warn().Msg("nothing is recorded any more, so where the tensors were allocated is not looked up")
		return nil, 0
	}
	var addresses []uint64
	for _, h := range found.Holders {
		addresses = append(addresses, h.Storages...)
	}
	path, err := TraceOf(pid, answer)
	if err == nil {
		var sites allocationSites
		var saved uint64
		if sites, saved, err = r.readSites(path, found.Seq, addresses); err == nil {
			return sites, saved
		}
	}
	r.Log.Warn().Msgf("where the tensors were allocated is not known: %v", err)
	return nil, 0
}

func (r *Recorder) readSites(path string, seq uint64, addresses []uint64) (sites allocationSites, saved uint64,
	err error) {
	source, err := tracefile.Open(r.Console, path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	sites, saved, err = analyzer.LiveSites(source,
		analyzer.Options{Symbols: cli.SymbolOptions(), Own: cli.OwnFlags(nil)}, seq, addresses)
	if err != nil {
		return nil, 0, tracefile.ReadError(path, source, err)
	}
	return sites, saved, nil
}

// of groups a holder's storages by place, those without one last.
func (s allocationSites) of(h *trace.Holder) []holderSite {
	list := []holderSite{}
	if s == nil {
		return list
	}
	for _, address := range h.Storages {
		key := s[address].Key
		n := slices.IndexFunc(list, func(one holderSite) bool { return one.Site == key })
		if n < 0 {
			n = len(list)
			list = append(list, holderSite{Site: key})
		}
		list[n].Storages++
	}
	slices.SortStableFunc(list, func(a, b holderSite) int {
		if (a.Site == "") != (b.Site == "") {
			return len(b.Site) - len(a.Site)
		}
		return b.Storages - a.Storages
	})
	return list
}
