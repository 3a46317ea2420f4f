// Package browser opens pages in a real browser. What is done there is in pages.mjs.
package browser

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/guest"
	"memtrace/internal/page"
	"memtrace/internal/profile"
	"memtrace/internal/render"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/textform"
	"memtrace/trace"
)

var (
	update = flag.Bool("update", false, "rewrite the layout and the pictures in testdata")
	shots  = flag.String("shots", "", "folder to put a picture of each page into")
)

const (
	layoutFile = "testdata/layout.json"
	limit      = 10 * time.Minute
	many       = 1 << 20 // blocks of a history
)

// modules installs playwright-core and axe-core, once, as locked, and returns their folder.
func modules(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed: pages are not opened in a browser")
	}
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := guest.Cache()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "npm", fmt.Sprintf("browser-%x", sha256.Sum256(lock))[:24])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	turn, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(folder, "installed")
	if _, err := os.Stat(done); err == nil {
		return folder
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = folder
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, said)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func summarize(t *testing.T, text string) *report.Summary {
	t.Helper()
	s, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(text string) (*report.Summary, error) {
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		return nil, err
	}
	var sources [2]*trace.Reader
	for i := range sources {
		var err error
		if sources[i], err = trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
			return nil, err
		}
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return nil, err
	}
	return analyzer.Summarize(sources[0],
		analyzer.Options{Question: analyzer.Question{Sites: true, Groupings: append(diff.Groupings(), "category")},
			Training: true, HistoryBlocks: many, Ahead: sources[1],
			RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}})
}

// plan is what pages.mjs reads.
type plan struct {
	Modules  string     `json:"modules"`
	Chromium string     `json:"chromium"`
	Layout   string     `json:"layout"`
	Shots    string     `json:"shots"` // folder for pictures of whole pages; "": none
	Tops     string     `json:"tops"`  // folder for pictures of their upper parts, which are compared
	Pages    []namedURL `json:"pages"`
	Run      struct {
		URL    string      `json:"url"`
		Expect expectation `json:"expect"`
	} `json:"run"`
	Hostile string `json:"hostile"`
	Diff    struct {
		URL      string   `json:"url"`
		Sentence string   `json:"sentence"`
		States   []string `json:"states"`
	} `json:"diff"`
	Ranks  string `json:"ranks"` // of which rank 3 differs
	Served string `json:"served"`
	Live   struct {
		URL  string `json:"url"`
		Grow string `json:"grow"`
	} `json:"live"`
	Index string `json:"index"`
}

type namedURL struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// expectation is the report's figures of the run.
type expectation struct {
	Owners [][]string `json:"owners"` // by category, at the peak
	Peak   string     `json:"peak"`
	End    string     `json:"end"`
	Map    string     `json:"map"`
}

func expect(s *report.Summary) expectation {
	e := expectation{Peak: report.SizeText(s.Framework.PeakBytes), End: report.SizeText(s.Framework.LiveBytes)}
	held := s.Training.Iterations[s.Training.Highest].Peak.Held
	order := make([]int, len(held))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), strings.Compare(s.Training.Categories[a],
			s.Training.Categories[b]))
	})
	blocks := map[string]int{}
	peak := 0
	for i, time := range s.History.Times {
		if time <= s.Framework.PeakTimeNS {
			peak = i
		}
	}
	all := 0
	for _, b := range s.History.Blocks {
		if int(b.Born) <= peak && peak < int(b.Died) {
			blocks[s.History.Owners[b.Owner].Keys[0]]++
			all++
		}
	}
	for _, i := range order {
		if held[i] > 0 {
			name := s.Training.Categories[i]
			e.Owners = append(e.Owners, []string{name, report.SizeText(held[i]),
				fmt.Sprintf("%.1f%%", 100*float64(held[i])/float64(s.Framework.PeakBytes)), fmt.Sprint(blocks[name])})
		}
	}
	e.Owners = append(e.Owners, []string{"total", e.Peak, "100.0%", fmt.Sprint(all)})
	d := &s.Devices[0]
	e.Map = fmt.Sprintf("%s in %d segments, %s of it in blocks; %s free in ", report.SizeText(d.ReservedBytesPeak),
		d.ReservedBytesPeak/storySegment, e.Peak, report.SizeText(d.ReservedBytesPeak-s.Framework.PeakBytes))
	return e
}

func TestPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a browser takes a while")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: pages are not opened in a browser")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: pages are not opened in a browser")
	}
	dir := t.TempDir()
	p := plan{Modules: modules(t), Chromium: chromium, Shots: *shots, Tops: filepath.Join(dir, "tops")}
	p.Layout = filepath.Join(dir, "layout.json")
	p.write(t, dir)
	p.serve(t)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "pages.mjs", path)
	cmd.Env = append(os.Environ(), "FONTCONFIG_FILE="+ownFonts(t))
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	compareLayouts(t, p.Layout)
	compareShots(t, p.Tops)
}

// write makes the pages that are files.
func (p *plan) write(t *testing.T, dir string) {
	t.Helper()
	const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e"
	run, wide := summarize(t, trained("", 5, 0, false)), summarize(t, trained("", 5, 4<<20, false))
	oom := summarize(t, trained("", 3, 0, true))
	file := func(name string, write func(*bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file://" + path
	}
	of := func(s *report.Summary, path string) func(*bytes.Buffer) error {
		return func(b *bytes.Buffer) error {
			return page.Write(b, s, page.Options{Path: path, Writer: "memtrace test"})
		}
	}
	p.Run.URL, p.Run.Expect = file("run.html", of(run, "run.bin")), expect(run)
	p.Hostile = file("hostile.html", of(summarize(t, trained(hostile, 2, 0, false)), hostile))
	d := diff.New(run, wide)
	d.Base.Path, d.New.Path = "run.bin", "wide.bin"
	d.ShowDefaults(run, wide, "category")
	p.Diff.URL = file("diff.html", func(b *bytes.Buffer) error {
		return page.WriteDiff(b, d, run, wide, page.Options{Writer: "memtrace test"})
	})
	p.Ranks = file("ranks.html", func(b *bytes.Buffer) error {
		return page.WriteRanks(b, ranksOf(t, run, run, run, wide, run),
			page.RanksOptions{Names: "runs/", Folder: "runs", Writer: "memtrace test"})
	})
	p.Diff.Sentence = render.DiffVerdict(d)
	words := map[string]string{diff.StateNew: "NEW", diff.StateGone: "REMOVED", diff.StateGrew: "GREW",
		diff.StateShrank: "SHRANK"}
	for _, g := range d.Groups {
		for _, row := range g.Rows {
			if g.By == "module" && g.Level == report.LevelFramework && row.State != diff.StateSame {
				p.Diff.States = append(p.Diff.States, row.Title()+" "+words[row.State])
			}
		}
	}
	slices.Sort(p.Diff.States)
	p.Pages = []namedURL{{"run", p.Run.URL}, {"oom", file("oom.html", of(oom, "oom.bin"))}, {"diff", p.Diff.URL}}
}

// ranksOf compares summaries as ranks of a run.
func ranksOf(t *testing.T, summaries ...*report.Summary) *diff.Ranks {
	t.Helper()
	var list []diff.RankProcess
	for rank, s := range summaries {
		of := *s
		of.Process.Rank = &rank
		list = append(list, diff.RankProcess{Path: fmt.Sprintf("runs/rank%d.bin", rank), Head: report.HeadOf(&of)})
	}
	ranks, err := diff.CompareRanks(list, func(p *diff.RankProcess) (*report.Summary, error) {
		return summaries[*p.Head.Summary.Process.Rank], nil
	}, "category")
	if err != nil {
		t.Fatal(err)
	}
	return ranks
}

// serve makes the pages that a server sends: one that holds no blocks, and one of a run that goes on.
func (p *plan) serve(t *testing.T) {
	t.Helper()
	var stage atomic.Int64
	traces := &page.Traces{Title: "runs", Writer: "memtrace test", Blocks: 1,
		List: func() ([]page.Entry, error) {
			return []page.Entry{{Path: "run.bin", State: "ended"}, {Path: "live.bin", State: "running"}}, nil
		},
		Version: func(path string) string { return fmt.Sprint(stage.Load()) },
		Read: func(path string) (*report.Summary, error) {
			if path == "run.bin" {
				return read(trained("", 5, 0, false))
			}
			n := stage.Load()
			s, err := read(trained("", int(2+2*n), 0, false))
			if err == nil && n < 2 {
				s.Process.Ended = report.EndedRunning
			}
			return s, err
		}}
	token := page.NewToken()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := page.NewServer(token, traces)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	grow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stage.Add(1) }))
	t.Cleanup(grow.Close)
	base := "http://" + listener.Addr().String()
	p.Served, p.Live.URL, p.Live.Grow, p.Index = base+page.PagePath(token, "run.bin"), base+
		page.PagePath(token, "live.bin"), grow.URL, base+"/"+token+"/"
}
