package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// summary is of a trace with so many blocks, under a tag.
func summary(t *testing.T, tag string, blocks int) *report.Summary {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "trace version=1\ninfo key=\"process.command\" value=%q\nstring id=1 value=%q\n", tag, tag)
	for i := range blocks {
		fmt.Fprintf(&text,
			"alloc seq=%d time=%d thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=%#x size=512 tag=1\n", i+1, 1000*(i+1), 4096*(i+1))
	}
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := analyzer.Summarize(r, analyzer.Options{HistoryBlocks: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const token = "0123456789abcdef"

// served is a server of one trace.
func served(t *testing.T, path string, read func() (*report.Summary, error)) (http.Handler, *Traces) {
	traces := &Traces{Title: "runs", Writer: "test", Blocks: 100, List: func() ([]Entry, error) {
		return []Entry{{Path: path, Command: path, State: "ended"}}, nil
	},
		Version: func(string) string { return "" }, Read: func(string) (*report.Summary, error) { return read() }}
	return NewServer(token, traces).Handler, traces
}

func ask(t *testing.T, h http.Handler, method, target string,
	head http.Header) (status int, text string, answer *http.Response) {
	t.Helper()
	request := httptest.NewRequest(method, "http://127.0.0.1:1"+target, nil)
	request.Host = "127.0.0.1:8123"
	for name, values := range head {
		if name == "Host" {
			request.Host = values[0]
			continue
		}
		request.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body), w.Result()
}

// Without the token there is nothing, with it pages for this machine's own browser, and nothing for others.
func TestForeignRequests(t *testing.T) {
	h, _ := served(t, "run.bin", func() (*report.Summary, error) { return summary(t, "a", 5), nil })
	page := PagePath(token, "run.bin")
	for _, c := range []struct {
		method, target string
		head           http.Header
		status         int
	}{
		{"GET", "/" + token + "/", nil, 200},
		{"HEAD", page, nil, 200},
		{"GET", page, nil, 200},
		{"GET", page + "/state", nil, 200},
		{"GET", page, http.Header{"Host": {"localhost:8123"}}, 200},
		{"GET", page, http.Header{"Host": {"[::1]:8123"}}, 200},
		{"GET", page, http.Header{"Origin": {"http://127.0.0.1:8123"}}, 200},
		{"GET", page, http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"GET", page, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"},
			"Sec-Fetch-Dest": {"document"}}, 200},

		{"GET", "/", nil, 403},
		{"GET", "/" + token[:15] + "/", nil, 403},
		{"GET", "/" + token + "0/", nil, 403},
		{"GET", "/" + strings.ToUpper(token) + "/", nil, 403},
		{"GET", "//" + token + "/", nil, 403},
		{"GET", strings.Replace(page, token, "x", 1), nil, 403},
		{"GET", "/?token=" + token, nil, 403},
		{"GET", page, http.Header{"Host": {"evil.example"}}, 403},
		{"GET", page, http.Header{"Host": {"127.0.0.1.evil.example:8123"}}, 403},
		{"GET", page, http.Header{"Host": {""}}, 403},
		{"GET", page, http.Header{"Origin": {"http://evil.example"}}, 403},
		{"GET", page, http.Header{"Origin": {"null"}}, 403},
		{"GET", page, http.Header{"Origin": {"http://127.0.0.1:9999"}}, 403},
		{"GET", page, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"GET", page, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"},
			"Sec-Fetch-Dest": {"iframe"}}, 403},
		{"GET", page, http.Header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"cors"}}, 403},
		{"POST", page, nil, 405},
		{"OPTIONS", page, nil, 405},
		{"DELETE", "/" + token + "/", nil, 405},
	} {
		status, text, answer := ask(t, h, c.method, c.target, c.head)
		if status != c.status {
			t.Errorf("%s %s %v: %d, want %d", c.method, c.target, c.head, status, c.status)
		}
		if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Referrer-Policy") != "no-referrer" ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" || answer.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: head %v", c.target, answer.Header)
		}
		if status == 403 && strings.Contains(text, "run.bin") {
			t.Errorf("%s tells %q", c.target, text)
		}
	}
}

// No address leads to a file: a trace is found by a name that the server makes of its path.
func TestNoPathsInAddresses(t *testing.T) {
	read := 0
	h, _ := served(t, "/runs/run.bin", func() (*report.Summary, error) { read++; return summary(t, "a", 5), nil })
	for _, path := range []string{"t/", "t/..", "t/../../etc/passwd", "t/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
		"t//runs/run.bin", "t/%2Fruns%2Frun.bin", "t/run.bin", "runs/run.bin", "../", "t/" + strings.Repeat("0", 20),
		"t/" + PageID("/runs/run.bin") + "/../../x",
		"t/" + PageID("/runs/run.bin") + "%00", "t/" + PageID("/etc/passwd")} {
		if status, text, _ := ask(t, h, "GET", "/"+token+"/"+path, nil); status != 404 {
			t.Errorf("%s: %d %.100s", path, status, text)
		}
	}
	if read > 0 {
		t.Errorf("%d traces were read", read)
	}
}

// Names that look like markup are text, in the list and on the page.
func TestHostileNames(t *testing.T) {
	const evil = "<img src=x onerror=alert(1)>\x1b[2J\u202e\"'</script>.bin"
	h, traces := served(t, evil, func() (*report.Summary, error) { return summary(t, evil, 5), nil })
	for _, target := range []string{"/" + token + "/", PagePath(token, evil)} {
		status, text, _ := ask(t, h, "GET", target, nil)
		if status != 200 || strings.Contains(text, "<img") || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: %d, or a name that is markup", target, status)
		}
		if !strings.Contains(text, "&lt;img") && !strings.Contains(text, `\u003cimg`) {
			t.Errorf("%s: the name is not shown", target)
		}
	}
	traces.List = func() ([]Entry, error) { return []Entry{{Path: evil, Problem: evil}}, nil }
	if _, text, _ := ask(t, h, "GET", "/"+token+"/", nil); strings.Contains(text, "<img") ||
		strings.Contains(text, "href") {
		t.Error("a problem is markup, or a trace that cannot be read has a link")
	}
}

// A trace that grows has a new version once it was read again, and the page of the previous state can still send
// requests.
func TestGrowingTrace(t *testing.T) {
	var blocks atomic.Int64
	blocks.Store(120)
	h, traces := served(t, "run.bin", func() (*report.Summary, error) {
		n := blocks.Load()
		s := summary(t, "a", int(n))
		if s.Process.Ended = report.EndedRunning; n >= 300 {
			s.Process.Ended = report.EndedClean
		}
		return s, nil
	})
	page := PagePath(token, "run.bin")
	now := func() (s state) {
		t.Helper()
		status, text, _ := ask(t, h, "GET", page+"/state", nil)
		if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return s
	}
	until := func(version string) state {
		t.Helper()
		s := now()
		for ; s.Version != version; s = now() {
			shown := traces.known[PageID("run.bin")]
			shown.mu.Lock()
			shown.next = time.Time{} // it is read again at the next question, as if time had passed
			shown.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		return s
	}
	total := func(version string, event int) (status int, bytes uint64) {
		t.Helper()
		status, text, _ := ask(t, h, "GET", fmt.Sprintf("%s/moment?version=%s&event=%d", page, version, event), nil)
		var answer struct{ Live [][3]uint64 }
		if status == 200 {
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			for _, row := range answer.Live {
				bytes += row[1]
			}
		}
		return status, bytes
	}
	if s := now(); s.Version != "1" || !s.Live {
		t.Fatalf("%+v", s)
	}
	blocks.Store(200)
	until("2")
	for _, version := range []string{"1", "2"} {
		if status, bytes := total(version, 119); status != 200 || bytes != 120*512 {
			t.Errorf("version %s: %d, %d bytes", version, status, bytes)
		}
	}
	if status, _ := total("1", 150); status != 400 {
		t.Errorf("an event that version 1 has not: %d", status)
	}
	blocks.Store(300)
	if s := until("3"); s.Live {
		t.Error("the process has ended")
	}
	if status, _ := total("1", 119); status != 409 {
		t.Errorf("a state that is not known any more: %d", status)
	}
}

// What cannot be read is reported, and does not end the server; a request that no page sends has no answer.
func TestMalformedRequests(t *testing.T) {
	fails := true
	h, _ := served(t, "run.bin", func() (*report.Summary, error) {
		if fails {
			return nil, errors.New("run.bin: offset 0: not a trace")
		}
		return summary(t, "a", 150), nil
	})
	page := PagePath(token, "run.bin")
	if status, text, answer := ask(t, h, "GET", page, nil); status != 500 || !strings.Contains(text, "not a trace") ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s", status, text)
	}
	fails = false
	for question, want := range map[string]int{
		"moment?event=3": 200, "moment?event=3&edge=-1": 200,
		"columns?from=0&to=150&count=10&axis=events&by=0&shown=0": 200, "largest?event=3&limit=5": 200,
		"weights?by=0": 200, "summit?event=3&direction=1": 200,
		"event?position=7": 200, "time?event=3": 200, "highest?from=0&to=9": 200, "segments?event=3": 200,
		"secrets": 404, "moment": 400, "moment?event=150": 400, "moment?event=-1": 400, "moment?event=NaN": 400,
		"moment?event=3&edge=1e99": 400, "columns?from=0&to=150&count=1e9&axis=events&by=0": 400,
		"columns?from=9&to=1&count=5&by=0": 400, "columns?from=0&to=9&count=5&by=99": 400,
		"columns?from=0&to=9&count=5&by=0&shown=-1": 400, "columns?from=-1e18&to=1e18&count=5&by=0&shown=0": 200,
		"columns?from=-1e18&to=1e18&count=5&by=0&shown=0&axis=events": 200, "largest?event=3&limit=1e9": 400,
		"weights?by=-1": 400, "time?event=9e9": 400, "event?position=Inf": 400, "segments?event=": 400,
		"highest?from=9e18&to=9e18&axis=events": 400,
	} {
		sign := "?"
		if strings.Contains(question, "?") {
			sign = "&"
		}
		if status, text, _ := ask(t, h, "GET", page+"/"+question+sign+"version=1", nil); status != want {
			t.Errorf("%s: %d %.200s", question, status, text)
		}
	}
}

// Of many traces the latest ones are kept; the others are read again on request.
func TestManyTraces(t *testing.T) {
	reads := map[string]int{}
	var list []Entry
	for i := range 3 * maxRead {
		list = append(list, Entry{Path: fmt.Sprint("run", i)})
	}
	traces := &Traces{Blocks: 1, List: func() ([]Entry, error) { return list, nil },
		Version: func(string) string { return "" },
		Read:    func(path string) (*report.Summary, error) { reads[path]++; return summary(t, path, 3), nil }}
	h := NewServer(token, traces).Handler
	for _, entry := range append(list, list[0]) {
		if status, text, _ := ask(t, h, "GET", PagePath(token, entry.Path), nil); status != 200 {
			t.Errorf("%s: %d %s", entry.Path, status, text)
		}
	}
	if len(traces.known) > maxRead || reads["run0"] != 2 || reads["run5"] != 1 {
		t.Errorf("%d traces are kept; read %v", len(traces.known), reads)
	}
}

// A fault in reading, such as a file that is truncated while it is mapped, is an answer like others.
func TestFaultsAreReported(t *testing.T) {
	h, _ := served(t, "run.bin", func() (*report.Summary, error) { panic("cut") })
	if status, text, _ := ask(t, h, "GET", PagePath(token, "run.bin"), nil); status != 500 ||
		!strings.Contains(text, "internal fault: cut") {
		t.Errorf("%d %s", status, text)
	}
}
