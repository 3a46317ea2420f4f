package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/textform"
	"memtrace/trace"
)

const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e{{.Data}}"

// traced makes a trace of blocks that PyTorch hands out under a tag and a mark of that name.
func traced(t *testing.T, tag string, blocks int) *report.Summary {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "trace version=1\ninfo key=\"process.command\" value=%q\nstring id=1 value=%q\n", tag, tag)
	seq := 0
	event := func(format string, args ...any) {
		seq++
		fmt.Fprintf(&text, format+"\n", append([]any{seq, seq * 1000}, args...)...)
	}
	event("mark seq=%d time=%d thread=1 name=1")
	var allocated uint64
	for i := range blocks {
		size := uint64(512 * (1 + i%7))
		allocated += size
		event(
			"alloc seq=%d time=%d thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=%#x size=%d tag=%d allocated=%d reserved=1048576", 4096*(i+1), size, i%2, allocated)
		if i%3 == 2 {
			allocated -= size
			event(
				"free seq=%d time=%d thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=%#x size=%d allocated=%d reserved=1048576", 4096*(i+1), size, allocated)
		}
	}
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := analyzer.Summarize(r, analyzer.Options{Question: analyzer.Question{Sites: true}, HistoryBlocks: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pageOf(t *testing.T, s *report.Summary, path string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, Options{Path: path, Writer: "memtrace test"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var factsElement = regexp.MustCompile(`(?s)<script type="application/json" id="facts">(.*?)</script>`)

func factsOf(t *testing.T, page string) (d data) {
	t.Helper()
	found := factsElement.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no facts")
	}
	if err := json.Unmarshal([]byte(found[1]), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// sectionOf opens a section of columns.
func sectionOf(t *testing.T, page, id string) []byte {
	t.Helper()
	found := regexp.MustCompile(`<script type="application/octet-stream" id="` + id +
		`">([^<]*)</script>`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no section %s", id)
	}
	packed, err := base64.StdEncoding.DecodeString(found[1])
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The columns on the page add up to the report: at the peak event, all blocks together and by tag.
func TestPageAddsUp(t *testing.T) {
	s := traced(t, "encoder", 300)
	page := pageOf(t, s, "x.bin")
	d := factsOf(t, page)
	life, sizeOf, owners := make([]uint64, d.Blocks), make([]uint64, d.Blocks), make([]uint64, d.Blocks)
	times := make([]uint64, d.Events)
	raw := sectionOf(t, page, "columns")
	for _, c := range []struct {
		column []uint64
		planes int
	}{{life, 4}, {sizeOf, 4}, {owners, 4}, {times, 8}} {
		for plane := range c.planes {
			for row := range c.column {
				c.column[row] |= uint64(raw[row]) << (8 * plane)
			}
			raw = raw[len(c.column):]
		}
	}
	if len(raw) != 0 {
		t.Errorf("%d bytes behind the columns", len(raw))
	}
	var time uint64
	for i := range times {
		time += times[i]
		times[i] = time
	}
	sizes, born, died := make([]float64, d.Blocks), make([]int, 0, d.Blocks), make([]int, d.Blocks)
	ends := map[int]bool{}
	for event := range d.Events {
		if ends[event] {
			continue
		}
		b := len(born)
		born, sizes[b], died[b] = append(born, event), float64(d.Sizes[sizeOf[b]]), d.Events
		if life[b] > 0 {
			died[b] = event + int(life[b])
			ends[died[b]] = true
		}
	}
	tag := -1
	for i, by := range d.By {
		if by == "tag" {
			tag = i
		}
	}
	var total float64
	by := map[string]float64{}
	for i := range sizes {
		if born[i] <= d.Peak && d.Peak < died[i] {
			total += sizes[i]
			by[d.Keys[tag][d.Owners[owners[i]].Keys[tag]]] += sizes[i]
		}
	}
	if total != float64(s.Framework.PeakBytes) || int64(times[d.Peak]) != s.Framework.PeakTimeNS {
		t.Errorf("%v at %v, want %d at %d", total, times[d.Peak], s.Framework.PeakBytes, s.Framework.PeakTimeNS)
	}
	for _, row := range s.Group("tag", "framework").Rows {
		if by[row.Key] != float64(row.PeakBytes) || row.PeakBytes == 0 {
			t.Errorf("%s: %v, want %d", row.Key, by[row.Key], row.PeakBytes)
		}
	}
}

// No name of a trace, and no path, escapes from its element.
func TestPageEscapesNames(t *testing.T) {
	page := pageOf(t, traced(t, hostile, 10), hostile)
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d elements of scripts, want the facts, the columns and the script", n)
	}
	for _, text := range []string{"<img", "\x1b", "\u202e"} {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
	if keys := fmt.Sprint(factsOf(t, page).Keys); !strings.Contains(keys, "</script><script>alert(1)") {
		t.Errorf("the name was lost: %.300s", keys)
	}
}

// The page's policy allows its own style and script, to the byte, and nothing else.
func TestPagePolicy(t *testing.T) {
	page := pageOf(t, traced(t, "a", 10), "x.bin")
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("no policy")
	}
	words := html.UnescapeString(policy[1])
	for kind, pattern := range map[string]string{"style-src": `(?s)<style>(.*?)</style>`,
		"script-src": `(?s)<script>(.*?)</script>`} {
		body := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if body == nil || !strings.Contains(words, kind+" '"+hash(body[1])+"'") {
			t.Errorf("%s: the policy %q does not name what stands in the page", kind, words)
		}
	}
	if !strings.HasPrefix(words, "default-src 'none'") || strings.Contains(words, "unsafe") ||
		regexp.MustCompile(`\son\w+=|style="`).MatchString(page) {
		t.Errorf("policy %q, or something in the page that it forbids", words)
	}
	if found := regexp.MustCompile(`(?i)(src|href)="?[a-z]+:|https?://`).FindString(strings.ReplaceAll(page,
		"http://www.w3.org/2000/svg", "")); found != "" {
		t.Errorf("the page names %q", found)
	}
}

// The same summary gives the same bytes.
func TestPageIsDeterministic(t *testing.T) {
	first, second := pageOf(t, traced(t, "a", 200), "x.bin"), pageOf(t, traced(t, "a", 200), "x.bin")
	if first != second {
		t.Error("two pages of one trace differ")
	}
}

// Without a script the page has the answer, the table of owners and the whole text.
func TestPageWithoutScripts(t *testing.T) {
	s := traced(t, "encoder", 50)
	page := factsElement.ReplaceAllString(pageOf(t, s, "x.bin"), "")
	for _, text := range append(render.Verdict(s), "encoder", "<svg", "memtrace report --details x.bin") {
		if !strings.Contains(page, html.EscapeString(text)) && !strings.Contains(html.UnescapeString(page), text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

// A trace without blocks has a page, without a picture.
func TestPageOfNothing(t *testing.T) {
	page := pageOf(t, traced(t, "a", 0), "x.bin")
	if d := factsOf(t, page); d.Events != 0 || strings.Contains(page, "<canvas") {
		t.Errorf("%d events", d.Events)
	}
}

// The script's own tests run if node is installed; the continuous integration has it.
func TestModel(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the page's script is not tested")
	}
	if out, err := exec.Command(node, "--test", "script/test").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The page's own script stays small: loading time is spent on the blocks.
func TestScriptIsSmall(t *testing.T) {
	const most = 150_000
	size := 0
	files, err := filepath.Glob("script/*.js")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	used := slices.Concat(scriptOrder, diffOrder, ranksOrder)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
		if !slices.Contains(used, strings.TrimSuffix(filepath.Base(file), ".js")) {
			t.Errorf("%s is part of no page", file)
		}
	}
	if size > most {
		t.Errorf("%d bytes of script, more than %d", size, most)
	}
}

// The script writes sizes as the report does, to the last digit: a peak of 2.125 MiB was 2.12 MiB in the report's
// sentence and 2.13 MiB in the page's table.
func TestSizesAsInTheReport(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the page's script is not tested")
	}
	var list []uint64
	for unit := range 5 {
		for eighth := range uint64(2000) {
			list = append(list, (eighth<<(10*unit))/8)
		}
		for n := range uint64(500) {
			list = append(list, n*n*n*7919<<unit)
		}
	}
	list = append(list, 1<<20-1, 1<<30-1, 10<<20-1, 1<<53-1)
	given, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e",
		`const {sizeText} = require("./script/words.js"); let text = ""; process.stdin.on("data", (d) => (text += d)).on("end", () => console.log(JSON.stringify(JSON.parse(text).map(sizeText))))`)
	cmd.Stdin = bytes.NewReader(given)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(out, &texts); err != nil || len(texts) != len(list) {
		t.Fatalf("%v, %d texts", err, len(texts))
	}
	for i, text := range texts {
		if want := layout.Bytes(list[i]); text != want {
			t.Errorf("%d: %s, the report says %s", list[i], text, want)
		}
	}
}

// The outline of a run of more than 200 days got a wrong number of columns: their widths together took more than 64
// bits.
func TestOutlineOfALongRun(t *testing.T) {
	for _, width := range []int64{1 << 10, 1 << 44, 1 << 52} {
		highs := make([]uint64, 1000)
		highs[999] = 7
		whole, half := spread(highs, width, 1000*width), spread(highs, width/2, 1000*width)
		if len(whole) != outlineColumns || len(half) != outlineColumns/2 || whole[outlineColumns-1] != 7 {
			t.Errorf("width %d: %d and %d columns, the last is %d", width, len(whole), len(half), whole[len(whole)-1])
		}
	}
}
