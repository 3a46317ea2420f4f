package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// opened returns the document that a real browser renders from a page, and the page's console output.
func opened(t *testing.T, page, fragment string, flags ...string) (document, console string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the page is not opened in a browser")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{"--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" +
		filepath.Join(dir, "profile"), "--enable-logging=stderr", "--virtual-time-budget=20000",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom"}, flags...)
	cmd := exec.CommandContext(ctx, browser, append(args, (&url.URL{Scheme: "file", Path: path}).String()+fragment)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, line := range strings.Split(stderr.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			console += line + "\n"
		}
	}
	return string(out), console
}

var totalRow = regexp.MustCompile(`<tr class="total"><td class="name">total</td><td class="n">([^<]*)</td>`)

// The script runs under the page's own policy, logs nothing to the console, and its tables add up to the report: at the
// peak, at the end, and divided by another key.
func TestBrowser(t *testing.T) {
	t.Parallel()
	s := traced(t, "encoder", 300)
	page := pageOf(t, s, "x.bin")
	end := s.Process.DurationNS
	for fragment, want := range map[string]uint64{"": s.Framework.PeakBytes, "#by=tag": s.Framework.PeakBytes,
		"#axis=time&by=tag": s.Framework.PeakBytes, fmt.Sprintf("#at=%d", end): s.Framework.LiveBytes,
		"#by=nonsense&at=x&from=9&to=1": s.Framework.PeakBytes} {
		t.Run(fragment, func(t *testing.T) {
			t.Parallel()
			document, console := opened(t, page, fragment)
			if console != "" || !strings.Contains(document, `data-ready="yes"`) {
				t.Errorf("the page is not ready, or complains:\n%s", console)
			}
			if total := totalRow.FindStringSubmatch(document); total == nil || total[1] != layout.Bytes(want) {
				t.Errorf("total %q, want %s", total, layout.Bytes(want))
			}
			if strings.Contains(fragment, "by=tag") && !strings.Contains(document, `<span>encoder</span>`) {
				t.Error("the table does not name the tag")
			}
		})
	}
}

// Names that look like markup are text.
func TestBrowserHostileNames(t *testing.T) {
	t.Parallel()
	document, console := opened(t, pageOf(t, traced(t, hostile, 30), hostile), "#by=tag")
	if console != "" || !strings.Contains(document, `data-ready="yes"`) || strings.Contains(document, "<img") {
		t.Errorf("the page is not ready, complains, or has an element of a name's:\n%s", console)
	}
	if !strings.Contains(document, "&lt;/script&gt;&lt;script&gt;alert(1)") {
		t.Error("the name is not shown")
	}
}

// A run that runs out of memory before the end of its first iteration has a lane of iterations without any: the list
// was written as null, and the script failed on it.
func TestBrowserWithoutIterations(t *testing.T) {
	t.Parallel()
	s := traced(t, "encoder", 60)
	s.Training = &report.Training{IterationsBy: report.IterationsByOptimizer,
		Iterations: []report.Iteration{{Number: 1}}}
	document, console := opened(t, pageOf(t, s, "x.bin"), "")
	if console != "" || !strings.Contains(document, `data-ready="yes"`) {
		t.Errorf("the page is not ready, or complains:\n%s", console)
	}
}
