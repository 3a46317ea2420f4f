//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// servedPage sends requests to `memtrace serve` as a page does.
type servedPage struct{ address string }

func startServe(t *testing.T, args ...string) *servedPage {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"--quiet", "serve"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("after an interrupt memtrace serve ends with: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("memtrace serve printed no address")
	}
	return &servedPage{lines.Text()}
}

func (p *servedPage) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := http.Get(p.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s\n%.500s", path, err, answer.Status, text)
	}
	return string(text)
}

var factsOnPage = regexp.MustCompile(`(?s)<script type="application/json" id="facts">(.*?)</script>`)

// allocated is what the page shows as live after the last event of its state.
func (p *servedPage) allocated(t *testing.T) (version string, live bool, bytes uint64) {
	t.Helper()
	var facts struct {
		Events int
		Served string
		Live   bool
		Remote bool
	}
	found := factsOnPage.FindStringSubmatch(p.get(t, ""))
	if found == nil {
		t.Fatal("the page has no facts")
	}
	if err := json.Unmarshal([]byte(found[1]), &facts); err != nil || !facts.Remote {
		t.Fatalf("%v, %+v", err, facts)
	}
	var moment struct{ Live [][3]uint64 }
	text := p.get(t, fmt.Sprintf("/moment?version=%s&event=%d", facts.Served, facts.Events-1))
	if err := json.Unmarshal([]byte(text), &moment); err != nil {
		t.Fatal(err)
	}
	for _, row := range moment.Live {
		bytes += row[1]
	}
	p.checkMap(t, facts.Served, facts.Events-1, bytes)
	return facts.Served, facts.Live, bytes
}

// checkMap checks that every block is in a segment. The backward pass maps memory in threads that have no device of
// their own: such segments were taken for another device's, and blocks across their borders were outside.
func (p *servedPage) checkMap(t *testing.T, version string, event int, bytes uint64) {
	t.Helper()
	var m struct {
		Outside  uint64
		Segments []struct{ Held, Size uint64 }
	}
	if err := json.Unmarshal([]byte(p.get(t, fmt.Sprintf("/segments?version=%s&event=%d", version, event))), &m); err !=
		nil {
		t.Fatal(err)
	}
	var held uint64
	for _, s := range m.Segments {
		held += s.Held
	}
	if held != bytes || m.Outside != 0 {
		t.Errorf("%d bytes lie in segments and %d outside, of %d", held, m.Outside, bytes)
	}
}

// The page of a program that trains shows what PyTorch reports as allocated, to the byte, stage after stage, and when
// the program has ended.
func TestServeFollowsTheProgram(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, allocator := range []string{"expandable_segments:False", "expandable_segments:True"} {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			followProgram(t, "PYTORCH_CUDA_ALLOC_CONF="+allocator)
		})
	}
}

func followProgram(t *testing.T, env string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "pausing.py")
	if err := os.WriteFile(script, []byte(pausing), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startPaused(t, script, 2048, env)
	g.waitReady(t)
	p := startServe(t, "--blocks", "1", g.trace)
	wait := func(live bool, want uint64) {
		t.Helper()
		until(t, fmt.Sprintf("the page says %d bytes, live %t", want, live), func() bool {
			_, isLive, bytes := p.allocated(t)
			return isLive == live && (bytes == want || !live)
		})
	}
	wait(true, g.allocated)
	for range 2 {
		if _, err := io.WriteString(g.in, "\n"); err != nil {
			t.Fatal(err)
		}
		before := g.allocated
		g.waitReady(t)
		if g.allocated <= before {
			t.Fatalf("%d bytes, before %d", g.allocated, before)
		}
		wait(true, g.allocated)
	}
	g.in.Close()
	wait(false, 0)
	if text := p.get(t, ""); !strings.Contains(text, "kept") {
		t.Error("the page does not name the tag that grew")
	}
}
